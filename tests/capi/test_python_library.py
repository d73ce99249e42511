# SPDX-License-Identifier: Apache-2.0
"""The binding and its library: errors, queries, the mirror of the header, lifetimes, and how the library is found."""
import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
from array import array

import tssample
import tssample_c
from python_case import ALL, GREEDY, ROOT, Case, greedy_tokens, rows_with_peaks
from tssample import Pointer, RequestParams, Sampler, SampleResult, TsError


class Options(Case):
    def test_of_a_sampler(self):
        for options in (dict(programmatic_launch=True), dict(max_graphs=-1), dict(max_graphs=4096)):
            self.assertEqual(greedy_tokens(self.make(8, **options), rows_with_peaks(8, [4]), 1), [4])
        for wrong in (-2, 4097):
            with self.assertRaisesRegex(TsError, "max_graphs"):
                self.make(8, max_graphs=wrong)


class Errors(Case):
    def test_library_errors_name_the_argument(self):
        for status, word, call in (
                (1, "slots[1]", lambda: self.sampler.prepare_step([1, 2], [0, 16], GREEDY)),
                (1, "slots", lambda: self.sampler.prepare_step([1, 2], [3, 3], GREEDY)),
                (1, "rows_per_request", lambda: self.sampler.prepare_step([1], [0], GREEDY, 9)),
                (3, "", lambda: self.sampler.sample(rows_with_peaks(8, [1]), [0])),
                (3, "", lambda: self.sampler.verify(rows_with_peaks(8, [1]), [0], [0])),
                (1, "variant", lambda: self.sampler.prepare_capture(1, "fast"))):
            with self.assertRaises(TsError) as caught:
                call()
            self.assertEqual(caught.exception.status, status, caught.exception)
            self.assertIn(word, caught.exception.message)
            self.assertIn(caught.exception.status_name, str(caught.exception))

    def test_misaligned(self):
        logits = bytearray(8 * 4 + 1)
        address = ctypes.addressof((ctypes.c_char * len(logits)).from_buffer(logits))
        self.sampler.prepare_step([1], [0], GREEDY)
        with self.assertRaisesRegex(TsError, "logits"):
            self.sampler.sample(Pointer(address | 1, (1, 8), "fp32"), [0])

    def test_creation(self):
        for name, options in (("vocab_size", dict(vocab_size=0)), ("vocab_size", dict(vocab_size=2**22)),
                              ("n_slots", dict(vocab_size=8, n_slots=-1)),
                              ("invalid_token", dict(vocab_size=8, invalid_token=8))):
            with self.assertRaisesRegex(TsError, name):
                Sampler(device="cpu", **options)
        self.raises(ValueError, "vocab_size", Sampler, 2**31)
        self.raises(TypeError, "vocab_size", Sampler, 8.0)
        self.raises(ValueError, "seed", Sampler, 8, seed=-1)
        for device in ("gpu", "cpu:0", "cuda:", "cuda:x", "cuda:-1", None):
            self.raises(ValueError, "device", Sampler, 8, device=device)

    def test_no_such_gpu(self):
        with self.assertRaises(TsError) as caught:
            Sampler(8, device="cuda:99")
        self.assertEqual(caught.exception.status, tssample.ERROR_DEVICE)

    def test_closed(self):
        self.sampler.close()
        self.sampler.close()
        for call in (lambda: self.sampler.sample(rows_with_peaks(8, [1]), [0]), self.sampler.step_route,
                     lambda: self.sampler.prepare_step([1], [0], GREEDY), self.sampler.reset_capture):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()


class Queries(Case):
    def test_library(self):
        self.assertRegex(self.sampler.version(), r"^\d+\.\d+\.\d+$")
        capabilities = tssample.load().capabilities()
        self.assertEqual(capabilities, self.sampler.capabilities())
        self.assertIn("cpu", capabilities.devices)
        self.assertEqual(capabilities.abi_version, tssample.ABI_VERSION)
        self.assertEqual(capabilities.max_vocab, tssample.MAX_VOCAB)
        self.assertEqual(capabilities.logits_types, ("fp32", "bf16", "fp16"))
        self.assertEqual(self.sampler.device, "cpu")

    def test_routes_and_capture(self):
        self.assertEqual(self.sampler.step_route(), "none")
        self.assertIsNone(self.sampler.step_variant("sample"))
        self.sampler.prepare_step([1], [0], RequestParams(top_k=3))
        self.assertEqual((self.sampler.step_route(), self.sampler.step_variant("verify")), ("top_k", "verify_top_k"))
        self.assertEqual(self.sampler.capture_variants("sample"), ["default", "plain", "top_p", "top_k", "top_k_top_p"])
        for variant in self.sampler.capture_variants("sample"):
            self.sampler.prepare_capture(2, variant)
            self.assertEqual(list(self.sampler.sample(rows_with_peaks(8, [1, 5]), [8, 9]).tokens), [1, 5])
        self.sampler.reset_capture()
        self.assertEqual(self.sampler.step_route(), "none")
        self.raises(ValueError, "call", self.sampler.step_variant, "draft")

    def test_constants_mirror_the_header(self):
        with open(os.path.join(ROOT, "include", "tssample.h"), encoding="utf-8") as file:
            header = file.read()
        found = re.findall(r"\bTS_([A-Z0-9_]+) = (\d+)", header)
        found += re.findall(r"#define TS_(ABI_VERSION|MAX_VOCAB) (\d+)", header)
        self.assertGreaterEqual(len(found), 25)
        for name, value in found:
            self.assertEqual(getattr(tssample, name, None), int(value), name)

    def test_structs_mirror_the_header(self):
        """The C compiler's sizes and offsets, where there is a compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("no C compiler")
        structs = [s for s in vars(tssample_c).values() if isinstance(s, type) and issubclass(s, ctypes.Structure)
                   and s.__name__.startswith("ts_")]
        self.assertEqual(len(structs), 9)
        lines, expected = [], []
        for s in structs:
            lines.append(f'printf("%zu\\n", sizeof({s.__name__}));')
            expected.append(ctypes.sizeof(s))
            names = [f[0] for base in reversed(s.__mro__) for f in vars(base).get("_fields_", [])]
            for name in names:
                lines.append(f'printf("%zu\\n", offsetof({s.__name__}, {name}));')
                expected.append(getattr(s, name).offset)
        source = "#include <stdio.h>\n#include <tssample.h>\nint main(void) {" + "\n".join(lines) + "return 0; }"
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "offsets")
            subprocess.run([compiler, "-I", os.path.join(ROOT, "include"), "-x", "c", "-", "-o", program], input=source,
                           text=True, check=True)
            printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual([int(x) for x in printed.split()], expected)


class Lifetimes(Case):
    def test_arguments_live_until_the_call_returns(self):
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        for _ in range(200):  # temporaries alone
            out = self.sampler.sample(rows_with_peaks(8, [6, 2]), [0, 1], positions=[1, 2],
                                      allow_mask=array("I", [255, 255]), want=ALL)
            gc.collect(0)
            self.assertEqual(list(out.tokens), [6, 2])

    def test_buffers_are_let_go(self):
        logits = rows_with_peaks(8, [6])
        tokens = array("i", [0])
        self.sampler.prepare_step([1], [0], GREEDY)
        self.sampler.sample(logits, [0], out=SampleResult(tokens))
        logits.append(1.0)  # BufferError if something still held the memory
        tokens.append(1)
        before = sys.getrefcount(logits)
        self.raises(ValueError, "logits", self.sampler.sample, logits, [0])
        self.assertEqual(sys.getrefcount(logits), before)
        logits.append(1.0)

    def test_no_growth(self):
        logits, tokens = rows_with_peaks(8, [6]), SampleResult(array("i", [0]))
        slots = array("i", [0])

        def steps(n):
            for i in range(n):
                self.sampler.prepare_step([i], slots, GREEDY)
                self.sampler.sample(logits, slots, out=tokens)
        steps(100)
        tracemalloc.start()
        steps(50)
        before = tracemalloc.get_traced_memory()[0]
        steps(500)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        self.assertLess(grown, 4096)

    def test_dropped_samplers_are_freed(self):
        destroyed = []
        for _ in range(50):
            sampler = Sampler(8, device="cpu", n_slots=1)
            close = sampler._c.ts_sampler_destroy
            sampler._c = type("Spy", (), {"ts_sampler_destroy": staticmethod(
                lambda handle, close=close: (destroyed.append(1), close(handle)))})
            del sampler
        gc.collect()
        self.assertEqual(len(destroyed), 50)

    def test_with_block(self):
        with Sampler(8, device="cpu") as sampler:
            self.assertEqual(greedy_tokens(sampler, rows_with_peaks(8, [3]), 1), [3])
        self.raises(ValueError, "the sampler is closed", sampler.step_route)

    def test_failed_construction_is_collectable(self):
        for _ in range(20):
            with self.assertRaises(TsError):
                Sampler(0, device="cpu")
        gc.collect()

    def test_one_sampler_for_each_thread(self):
        wrong = []

        def work(peak):
            with Sampler(8, device="cpu", n_slots=4) as sampler:
                for _ in range(200):
                    if greedy_tokens(sampler, rows_with_peaks(8, [peak]), 1) != [peak]:
                        wrong.append(peak)
                try:
                    sampler.prepare_step([1], [100 + peak], GREEDY)
                except TsError as error:  # the message is this thread's
                    if f"= {100 + peak}" not in error.message:
                        wrong.append(error.message)
        threads = [threading.Thread(target=work, args=(peak,)) for peak in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Loading(unittest.TestCase):
    def test_wrong_libraries(self):
        with self.assertRaises(OSError):
            tssample.load("/nonexistent/libtssample.so.0")
        with self.assertRaisesRegex(OSError, "not a libtssample"):
            tssample.load("libc.so.6")

    def test_argument_and_environment(self):
        path = tssample.load().path
        script = "import tssample; print(tssample.Sampler(4, device='cpu').library.path)"
        environment = {**os.environ, "TSSAMPLE_LIBRARY": path, "PYTHONPATH": os.path.join(ROOT, "capi", "python")}
        printed = subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
        self.assertEqual((printed.returncode, printed.stdout.strip()), (0, path))
        environment["TSSAMPLE_LIBRARY"] = "/nonexistent.so"
        failed = subprocess.run([sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE, text=True)
        self.assertIn("/nonexistent.so", failed.stderr)
        with Sampler(4, device="cpu", library=path) as sampler:
            self.assertEqual(sampler.library.path, path)

    def test_numpy_is_not_needed(self):
        script = ("import sys; sys.modules['numpy'] = None\nimport array, tssample\n"
                  "s = tssample.Sampler(4, device='cpu')\n"
                  "s.prepare_step([1], [0], tssample.RequestParams(temperature=0.0))\n"
                  "print(s.sample(array.array('f', [0, 1, 3, 2]), [0]).tokens[0])")
        environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "capi", "python"),
                       "TSSAMPLE_LIBRARY": tssample.load().path}
        printed = subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
        self.assertEqual((printed.returncode, printed.stdout.strip()), (0, "2"))
