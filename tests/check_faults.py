# SPDX-License-Identifier: Apache-2.0
"""Checks tests/FAULTS_TABLE.md: every id of FAULTS.md has a row, and every test that a row names is in its file."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
IDS = [f"{letter}{i}" for letter, n in (("A", 7), ("B", 12), ("C", 10), ("D", 6), ("E", 7), ("F", 4))
       for i in range(1, n + 1)]


def main():
    with open(os.path.join(ROOT, "tests", "FAULTS_TABLE.md"), encoding="utf-8") as file:
        rows = dict((m[1], (m[2], m[3])) for m in re.finditer(r"^\| (\w\d+) \| (\S+) \| (.*) \|$", file.read(), re.M))
    failures = [f"{fault}: no row" for fault in IDS if fault not in rows]
    failures += [f"{fault}: not an id" for fault in rows if fault not in IDS]
    tested = 0
    for fault, (path, name) in rows.items():
        if path == "-":
            print(f"{fault}: not tested here: {name}")
            continue
        tested += 1
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            if name not in file.read():
                failures.append(f"{fault}: {path} has no test {name!r}")
    print("\n".join(failures))
    print(f"{tested} of {len(IDS)} ids have a test here, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
