# SPDX-License-Identifier: Apache-2.0
"""Every kind of array that the binding takes, for logits, slots, positions and masks; and those that it refuses."""
import copy
import ctypes
import mmap
import pickle
import tempfile
import unittest
from array import array

from python_case import ALL, GREEDY, Case, greedy_tokens, numpy, random_rows, rows_with_peaks
from tssample import Pointer, RequestParams, SampleResult


class NoCopies(Case):
    """A handle has one owner."""

    def test_copies_are_refused(self):
        for copying in (copy.copy, copy.deepcopy, pickle.dumps):
            self.raises(TypeError, "a Sampler cannot be copied", copying, self.sampler)


class Empty(Case):
    """Rows without elements stand for no default width."""

    def test_rows_of_no_elements(self):
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        nothing = array("f", bytes(4 * 8 * 2))
        logits = rows_with_peaks(8, [3, 1])
        address = logits.buffer_info()[0]
        for empty in (Pointer(address, (2, 0), "fp32"), Pointer(address, (2, 1, 0), "fp32")):
            self.raises(ValueError, "logits", self.sampler.sample, empty, [0, 1])
        for mask in ([[], []], Pointer(nothing.buffer_info()[0], (2, 0), "int32")):
            self.raises(ValueError, "allow_mask", self.sampler.sample, logits, [0, 1], allow_mask=mask)
        self.raises(ValueError, "candidates", self.sampler.verify, logits, [0, 1],
                    Pointer(nothing.buffer_info()[0], (2, 0), "int32"))

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy_rows_of_no_elements(self):
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        logits, sample = rows_with_peaks(8, [3, 1]), self.sampler.sample
        for shape in ((2, 0), (2, 1, 0)):
            behind = numpy.ones(16, numpy.float32)  # what would be read past the empty view
            self.raises(ValueError, "logits", sample, behind[:0].reshape(shape), [0, 1])
            bits = numpy.ones(16, numpy.uint32)[:0].reshape(shape)
            self.raises(ValueError, "allow_mask", sample, logits, [0, 1], allow_mask=bits)
            ids = numpy.ones(16, numpy.int32)[:0].reshape(shape)
            self.raises(ValueError, "candidates", self.sampler.verify, logits, [0, 1], ids)
        for empty in ([], b"", numpy.zeros(0, numpy.uint32), numpy.zeros((0, 1), numpy.uint32)):
            self.raises(ValueError, "allow_mask", sample, logits, [0, 1], allow_mask=empty)


class Kinds(Case):
    """What is of the wrong kind is refused by name, before ctypes or the library sees it."""

    def test_kinds_of_other_arguments(self):
        self.raises(TypeError, "temperature", RequestParams, temperature="1")
        self.raises(TypeError, "variant", self.sampler.prepare_capture, 1, 3)
        logits = rows_with_peaks(8, [3])
        step, sample, verify = self.sampler.prepare_step, self.sampler.sample, self.sampler.verify
        step([1], [0], GREEDY)
        for stream in ("x", b"x", 1.5):
            self.raises(TypeError, "stream", step, [1], [0], GREEDY, stream=stream)
            self.raises(TypeError, "stream", sample, logits, [0], stream=stream)
            self.raises(TypeError, "stream", verify, logits, [0], [0], stream=stream)
            self.raises(TypeError, "stream", self.sampler.prepare_capture, 1, "plain", stream=stream)
            self.raises(TypeError, "stream", self.sampler.reset_capture, stream=stream)
        for name in ("top_p", "min_p"):
            for text in ("1", b"1", bytearray(b"1")):
                self.raises(TypeError, name, RequestParams, **{name: text})
        for name in ("rows_per_request", "vocab", "n_valid"):
            self.raises(ValueError, name, sample, logits, [0], **{name: -1})
            self.raises(ValueError, name, verify, logits, [0], [0], **{name: -1})
        self.raises(TypeError, "want", sample, logits, [0], want=5)
        self.raises(ValueError, "dtype", sample, logits, [0], dtype=[])
        self.raises(ValueError, "want", sample, logits, [0], want=["ranks"], out=SampleResult(array("i", [0])))

    def test_pointers_of_other_things_than_integers(self):
        logits = rows_with_peaks(8, [3, 1])
        at = logits.buffer_info()[0]
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        for kind, wrong in ((TypeError, Pointer("x", (2, 8), "fp32")), (TypeError, Pointer(1.5, (2, 8), "fp32")),
                            (TypeError, Pointer(at, None, "fp32")), (TypeError, Pointer(at, "28", "fp32")),
                            (TypeError, Pointer(at, (2, 8), "fp32", 8.0)), (TypeError, Pointer(at, (2, 8), [])),
                            (ValueError, Pointer(-4, (2, 8), "fp32")), (ValueError, Pointer(2**64, (2, 8), "fp32")),
                            (ValueError, Pointer(at, (2, -8), "fp32")), (ValueError, Pointer(at, (-1, -2, 8), "fp32")),
                            (ValueError, Pointer(at, (2, 8), "fp32", -8))):
            self.raises(kind, "logits", self.sampler.sample, wrong, [0, 1])


class Logits(Case):
    """Every way to pass logits gives the ids of the peaks."""

    PEAKS = [3, 0, 7]

    def check(self, logits, **options):
        self.assertEqual(greedy_tokens(self.sampler, logits, 3, **options), self.PEAKS)

    def halves(self, one):
        """The rows in 16 bits, 0 but for `one` at the peaks."""
        halves = array("H", bytes(2 * 8 * 3))
        for row, peak in enumerate(self.PEAKS):
            halves[row * 8 + peak] = one
        return halves

    def test_buffers(self):
        logits = rows_with_peaks(8, self.PEAKS)
        self.check(logits)
        self.check(memoryview(logits))
        self.check(memoryview(logits).cast("B").cast("f", [3, 8]))
        self.check((ctypes.c_float * 24)(*logits))
        self.check(((ctypes.c_float * 8) * 3)(*[tuple(logits[i:i + 8]) for i in (0, 8, 16)]))
        for raw in (bytes(logits), bytearray(logits), memoryview(bytes(logits))):
            self.check(raw, dtype="fp32")

    def test_three_axes(self):
        self.sampler.prepare_step([1], [0], GREEDY, rows_per_request=3)
        view = memoryview(rows_with_peaks(8, self.PEAKS)).cast("B").cast("f", [1, 3, 8])
        self.assertEqual(list(self.sampler.sample(view, [0]).tokens), self.PEAKS)

    def test_mmap(self):
        with tempfile.TemporaryFile() as file:
            file.write(bytes(rows_with_peaks(8, self.PEAKS)))
            file.flush()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                self.check(mapped, dtype="fp32")

    def test_bf16_and_fp16(self):
        for dtype, one in (("bf16", 0x3F80), ("bfloat16", 0x3F80), ("fp16", 0x3C00), ("float16", 0x3C00)):
            self.check(self.halves(one), dtype=dtype)
            self.check(bytes(self.halves(one)), dtype=dtype)
            self.check(array("h", bytes(self.halves(one))), dtype=dtype)
        # fp16 1.0 and bf16 1.0 read as the other type are other numbers: the peaks differ then.
        mixed = array("H", [0x3F80, 0x3C00] + [0] * 6)
        self.assertEqual(greedy_tokens(self.sampler, mixed, 1, dtype="bf16"), [0])
        mixed = array("H", [0x3C00, 0x4BC0] + [0] * 6)
        self.assertEqual(greedy_tokens(self.sampler, mixed, 1, dtype="fp16"), [1])

    def test_pointer(self):
        logits = rows_with_peaks(8, self.PEAKS)
        address = logits.buffer_info()[0]
        self.check(Pointer(address, (3, 8), "fp32"))
        self.check(Pointer(address, (24,), "float32"))
        wide = array("f", [99.0] * (3 * 11))
        for row in range(3):
            wide[row * 11:row * 11 + 8] = logits[row * 8:row * 8 + 8]
        self.check(Pointer(wide.buffer_info()[0], (3, 8), "fp32", row_stride=11))
        halves = self.halves(0x3F80)
        self.check(Pointer(halves.buffer_info()[0], (3, 8), "bf16"))

    def test_array_interface(self):
        class Holder:
            def __init__(self, memory, **interface):
                self.memory = memory
                self.__array_interface__ = {"version": 3, "data": (memory.buffer_info()[0], False), **interface}

        self.check(Holder(rows_with_peaks(8, self.PEAKS), typestr="<f4", shape=(3, 8)))
        self.check(Holder(self.halves(0x3F80), typestr="<V2", shape=(3, 8)), dtype="bf16")
        self.check(Holder(self.halves(0x3C00), typestr="<f2", shape=(3, 8), strides=(16, 2)))
        big = Holder(rows_with_peaks(8, self.PEAKS), typestr=">f4", shape=(3, 8))
        self.raises(TypeError, "logits", self.check, big)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy(self):
        logits = numpy.array(rows_with_peaks(8, self.PEAKS)).reshape(3, 8)
        self.check(logits)
        self.check(logits.astype(numpy.float16))
        self.check((logits.view(numpy.uint32) >> 16).astype(numpy.uint16), dtype="bf16")
        self.check(numpy.asfortranarray(logits).copy(order="C"))
        wide = numpy.full((3, 20), 99, numpy.float32)
        wide[:, 5:13] = logits
        self.check(wide[:, 5:13])
        tall = numpy.full((6, 8), 99, numpy.float32)
        tall[::2] = logits
        self.check(tall[::2])
        read_only = logits.copy()
        read_only.setflags(write=False)
        self.check(read_only)
        self.raises(ValueError, "logits", self.check, numpy.asfortranarray(logits))
        self.raises(ValueError, "logits", self.check, logits[::-1])
        self.raises(ValueError, "logits", self.check, numpy.broadcast_to(logits[0], (3, 8)))
        self.raises(ValueError, "logits", self.check, wide[:, 0:16:2])
        self.raises(TypeError, "logits", self.check, logits.astype(numpy.float64))
        self.raises(TypeError, "logits", self.check, logits.astype(">f4"))

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy_three_axes(self):
        wide = numpy.zeros((2, 3, 20), numpy.float32)
        peaks = [5, 1, 0, 2, 7, 7]
        for row, peak in enumerate(peaks):
            wide[row // 3, row % 3, 4 + peak] = 1
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY, rows_per_request=3)
        self.assertEqual(list(self.sampler.sample(wide[:, :, 4:12], [0, 1]).tokens), peaks)
        self.raises(ValueError, "logits", self.sampler.sample, numpy.zeros((3, 2, 8), numpy.float32).transpose(1, 0, 2),
                    [0, 1])

    def test_narrower_rows(self):
        self.assertEqual(greedy_tokens(self.sampler, array("f", [0, 1, 0, 2, 0, 1]), 2, vocab=3), [1, 0])
        self.assertEqual(greedy_tokens(self.sampler, rows_with_peaks(8, [7, 1]), 2, n_valid=7), [0, 1])

    def test_wrong_shapes(self):
        logits = rows_with_peaks(8, self.PEAKS)
        for wrong in (logits[:23], logits + logits, array("f"), b""):
            self.raises(ValueError, "logits", self.check, wrong, dtype="fp32")
        two = memoryview(logits[:16]).cast("B").cast("f", [2, 8])
        self.raises(ValueError, "logits", self.check, two)
        self.raises(ValueError, "logits", self.check, memoryview(logits).cast("B").cast("f", [3, 8]), vocab=7)
        self.raises(ValueError, "logits", self.check, b"12345", dtype="bf16")
        address = logits.buffer_info()[0]
        self.raises(ValueError, "logits", self.check, Pointer(address, (3, 8), "fp32", row_stride=7))
        self.raises(ValueError, "logits", self.check, Pointer(address, (24,), "fp32", row_stride=8))

    def test_wrong_types(self):
        logits = rows_with_peaks(8, self.PEAKS)
        for wrong in (array("d", logits), array("H", [0] * 24), bytes(logits), None, 7, "text", [1.0] * 24,
                      Pointer(0, (3, 8), "int32")):
            self.raises(TypeError, "logits", self.check, wrong)
        self.raises(TypeError, "logits", self.check, logits, dtype="bf16")
        self.raises(TypeError, "logits", self.check, Pointer(0, (3, 8), "fp64"))
        self.raises(ValueError, "dtype", self.check, logits, dtype="fp8")

    def test_cuda_memory_is_refused_on_the_cpu(self):
        class OnGpu:
            __cuda_array_interface__ = {"shape": (3, 8), "typestr": "<f4", "data": (4096, False), "version": 3}

        with self.assertRaisesRegex(TypeError, "^logits: CUDA memory"):
            self.check(OnGpu())


class CudaArguments(Case):
    """The arguments of a sampler on a GPU. The memory behind these interfaces is the host's, and so is the sampler."""

    class Array:
        def __init__(self, memory, typestr, shape, **interface):
            self.memory = memory
            self.__cuda_array_interface__ = {"version": 3, "data": (memory.buffer_info()[0], False), "typestr": typestr,
                                             "shape": shape, **interface}

    def setUp(self):
        super().setUp()
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)  # host arrays here, on every device
        self.sampler._on_cuda = True
        self.slots = self.Array(array("q", [0, 1]), "<i8", (2,))
        self.tokens = array("i", [0, 0])
        self.out = SampleResult(self.Array(self.tokens, "<i4", (2,)))

    def test_device_arrays(self):
        bf16 = array("H", [0] * 20)
        bf16[3] = bf16[10 + 5] = 0x3F80
        for logits, dtype in ((self.Array(rows_with_peaks(8, [3, 5]), "<f4", (2, 8), strides=None), None),
                              (self.Array(bf16, "<V2", (2, 8), strides=(20, 2)), "bf16"),
                              (Pointer(bf16.buffer_info()[0], (2, 8), "bf16", row_stride=10), None)):
            self.tokens[0] = self.tokens[1] = -1
            self.sampler.sample(logits, self.slots, positions=self.slots, dtype=dtype, out=self.out)
            self.assertEqual(list(self.tokens), [3, 5])

    def test_host_arrays_are_refused(self):
        host, device = rows_with_peaks(8, [3, 5]), self.Array(rows_with_peaks(8, [3, 5]), "<f4", (2, 8))
        sample = self.sampler.sample
        self.raises(TypeError, "logits: host memory", sample, host, self.slots, out=self.out)
        self.raises(TypeError, "slots: host memory", sample, device, [0, 1], out=self.out)
        self.raises(TypeError, "out.tokens: host memory", sample, device, self.slots, out=SampleResult(self.tokens))
        self.raises(ValueError, "out: ", sample, device, self.slots)
        masked = self.Array(rows_with_peaks(8, [3, 5]), "<f4", (2, 8), mask=device)
        self.raises(TypeError, "logits: masked", sample, masked, self.slots, out=self.out)
        read_only = self.Array(self.tokens, "<i4", (2,), data=(self.tokens.buffer_info()[0], True))
        self.raises(ValueError, "out.tokens: read-only", sample, device, self.slots, out=SampleResult(read_only))


class Indices(Case):
    """slots and positions: lists, 32 and 64 bits, numpy."""

    def test_slots(self):
        logits = rows_with_peaks(8, [1, 2, 3])
        kinds = [[5, 0, 3], (5, 0, 3), array("i", [5, 0, 3]), array("q", [5, 0, 3]),
                 memoryview(array("l", [5, 0, 3])), (ctypes.c_int32 * 3)(5, 0, 3)]
        if numpy is not None:
            kinds += [numpy.array([5, 0, 3], numpy.int32), numpy.array([5, 0, 3], numpy.int64)]
        for slots in kinds:
            self.sampler.prepare_step([1, 2, 3], slots, GREEDY)
            self.assertEqual(list(self.sampler.sample(logits, slots, positions=slots).tokens), [1, 2, 3])
            self.sampler.release_slots(slots)

    def test_state_follows_the_slot(self):
        # Request 2, in slot 0, is greedy; request 1 may only take the one id that top_k = 1 leaves.
        self.sampler.prepare_step([1, 2], [5, 0], [RequestParams(top_k=1), GREEDY])
        out = self.sampler.sample(rows_with_peaks(8, [6, 4]), [0, 5], want=["n_kept"])
        self.assertEqual((list(out.tokens), list(out.n_kept)), ([6, 4], [1, 1]))

    def test_request_ids(self):
        for ids in ([2**64 - 1], array("Q", [3]), array("q", [3]), range(4, 5)):
            self.sampler.prepare_step(ids, [0], GREEDY)
        # The bits of an int64 are the id: -1 is 2**64 - 1, who is known and needs no parameters.
        self.sampler.prepare_step([2**64 - 1], [1], GREEDY)
        self.sampler.prepare_step(array("q", [-1]), [1])
        self.raises(ValueError, "request_ids", self.sampler.prepare_step, [-1], [0], GREEDY)
        self.raises(ValueError, "request_ids", self.sampler.prepare_step, [2**64], [0], GREEDY)
        self.raises(TypeError, "request_ids", self.sampler.prepare_step, array("i", [1]), [0], GREEDY)
        self.raises(TypeError, "request_ids", self.sampler.prepare_step, ["a"], [0], GREEDY)

    def test_wrong_lengths_and_types(self):
        step, sample = self.sampler.prepare_step, self.sampler.sample
        self.raises(ValueError, "slots", step, [1, 2], [0], GREEDY)
        self.raises(ValueError, "params", step, [1, 2], [0, 1], [GREEDY])
        self.raises(TypeError, "params", step, [1], [0], [None])
        self.raises(TypeError, "params", step, [1], [0], 5)
        self.raises(TypeError, "rows_per_request", step, [1], [0], GREEDY, 1.5)
        step([1, 2], [0, 1], GREEDY)
        logits = rows_with_peaks(8, [1, 2])
        self.raises(ValueError, "positions", sample, logits, [0, 1], positions=[0])
        self.raises(ValueError, "positions", sample, logits, [0, 1], positions=[[0, 1]])
        self.raises(TypeError, "positions", sample, logits, [0, 1], positions=array("f", [0, 1]))
        self.raises(TypeError, "slots", sample, logits, [0.5, 1])
        self.raises(TypeError, "slots", sample, logits, array("h", [0, 1]))
        self.raises(ValueError, "slots", sample, logits, [2**63, 1])
        self.raises(ValueError, "slots", self.sampler.release_slots, memoryview(array("i", [0, 1, 2]))[::2])
        self.assertEqual(list(sample(logits, [0, 1]).tokens), [1, 2])  # nothing has changed

    def test_generators_of_params(self):
        self.sampler.prepare_step([1, 2], [0, 1], (GREEDY for _ in range(2)))
        self.assertEqual(self.sampler.step_route(), "greedy")


class Masks(Case):
    VOCAB = 70

    def test_one_bit(self):
        words = 3  # 70 ids
        for bit in (0, 31, 32, 63, 69):
            mask = array("I", [0] * words)
            mask[bit // 32] = 1 << bit % 32
            self.sampler.prepare_step([bit], [0], RequestParams(temperature=2.0, seed=bit))
            signed = array("i", bytes(mask))
            row = memoryview(mask).cast("B").cast("I", [1, words])
            for allow in (mask, signed, list(mask), [list(mask)], row, bytes(mask),
                          Pointer(mask.buffer_info()[0], (1, words), "uint32")):
                out = self.sampler.sample(random_rows(70, 1), [0], allow_mask=allow, want=ALL)
                self.assertEqual((out.tokens[0], out.logprobs[0], out.ranks[0], out.n_kept[0]), (bit, 0.0, 1, 1))

    def test_strided_and_short_masks(self):
        # Rows of one word in a table five words wide: ids from 32 on are forbidden by what is not there.
        table = array("I", [1 << 7, 0, 0, 0, 0, 1 << 9, 0, 0, 0, 0])
        self.sampler.prepare_step([1, 2], [0, 1], RequestParams(seed=1))
        out = self.sampler.sample(random_rows(70, 2), [0, 1],
                                  allow_mask=Pointer(table.buffer_info()[0], (2, 1), "int32", row_stride=5))
        self.assertEqual(list(out.tokens), [7, 9])

    def test_a_mask_is_for_one_call(self):
        logits = rows_with_peaks(70, [8])
        self.assertEqual(greedy_tokens(self.sampler, logits, 1, allow_mask=[2, 0, 0], positions=[5], n_valid=60), [1])
        self.assertEqual(greedy_tokens(self.sampler, logits, 1), [8])

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_masked_arrays(self):
        """Their mask would be lost, whatever they are given for."""
        self.sampler.prepare_step([1], [0], GREEDY)
        logits = random_rows(70, 1)
        masked = numpy.ma.masked_array(numpy.array(logits, numpy.float32), mask=[True] + [False] * 69)
        self.raises(TypeError, "logits: masked", self.sampler.sample, masked, [0])
        self.raises(TypeError, "slots: masked", self.sampler.sample, logits, numpy.ma.masked_array([0], mask=[True]))

    def test_wrong_masks(self):
        self.sampler.prepare_step([1], [0], GREEDY)
        for kind, mask in ((TypeError, array("q", [1, 1, 1])), (TypeError, array("f", [1, 1, 1])),
                           (ValueError, array("I", [1, 1])), (ValueError, [1, 1, 1, 1]), (ValueError, [-1, 0, 0]),
                           (ValueError, [[1, 1, 1], [1, 1, 1]]), (ValueError, b"12345"),
                           (TypeError, [True, False, True]), (TypeError, [[True] * 70]), (ValueError, [[1, 1, 1, 1]])):
            self.raises(kind, "allow_mask", self.sampler.sample, random_rows(70, 1), [0], allow_mask=mask)
