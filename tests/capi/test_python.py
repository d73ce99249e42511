# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the Python binding: python3 tests/capi/test_python.py [Class[.test]]. Answers are known without the
library: greedy rows, masks with one bit, top_k = 1, or two ways of saying the same."""
import unittest

from python_case import numpy  # first: it finds the binding
from test_python_arguments import *  # noqa: F403
from test_python_library import *  # noqa: F403
from test_python_results import *  # noqa: F403

import tssample

if __name__ == "__main__":
    print("library:", tssample.load().path, "| numpy:", numpy.__version__ if numpy else "not installed, tests skipped")
    unittest.main(verbosity=1 if numpy else 2)
