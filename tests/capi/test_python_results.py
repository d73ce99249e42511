# SPDX-License-Identifier: Apache-2.0
"""What sample and verify return, and how parameters, positions and seeds act. Answers are known without the library."""
import ctypes
import unittest
from array import array

import tssample
from python_case import ALL, GREEDY, INF, NAN, Case, greedy_tokens, numpy, random_rows, rows_with_peaks
from tssample import Pointer, RequestParams, SampleResult, TsError, VerifyResult


class Results(Case):
    def test_tokens_alone_by_default(self):
        self.sampler.prepare_step([1], [0], GREEDY)
        self.assertEqual(self.sampler.sample(rows_with_peaks(8, [4]), [0])[1:], (None,) * 4)

    def test_known_values(self):
        # Row 0: four equal logits and four that are ruled out. Row 1: no candidate. Row 2: a NaN and a +inf.
        logits = array("f", [1, 1, 1, 1, -INF, -INF, -INF, -INF] + [NAN] * 8 + [0, NAN, INF, 0, 0, 0, 0, 0])
        self.sampler.prepare_step([1, 2, 3], [0, 1, 2], RequestParams(temperature=0.0))
        out = self.sampler.sample(logits, [0, 1, 2], want=ALL)
        self.assertEqual(list(out.tokens), [0, 0, 2])
        self.assertAlmostEqual(out.logprobs[0], -1.3862944, 6)
        self.assertNotEqual(out.logprobs[1], out.logprobs[1])
        self.assertEqual(list(out.ranks), [1, 0, 1])
        self.assertEqual(list(out.n_kept), [1, 0, 1])
        self.assertEqual(list(out.row_flags), [0, tssample.ROW_NAN | tssample.ROW_EMPTY,
                                               tssample.ROW_NAN | tssample.ROW_INF])

    def test_n_bad_rows(self):
        logits = array("f", [1, 1, 1, 1, -INF, -INF, -INF, -INF] + [NAN] * 8 + [0, NAN, INF, 0, 0, 0, 0, 0])
        self.sampler.prepare_step([1, 2, 3], [0, 1, 2], RequestParams(temperature=0.0))
        counter = array("I", [5])
        self.sampler.sample(logits, [0, 1, 2], n_bad_rows=counter)
        self.sampler.verify(logits, [0, 1, 2], [[0]] * 3, n_bad_rows=counter)
        self.assertEqual(counter[0], 9)
        self.sampler.sample(logits, [0, 1, 2])
        self.assertEqual(counter[0], 9)
        for kind, wrong in ((TypeError, array("i", [0])), (TypeError, [0]), (ValueError, array("I")),
                            (ValueError, bytes(4))):
            self.raises(kind, "n_bad_rows", self.sampler.sample, logits, [0, 1, 2], n_bad_rows=wrong)

    def test_invalid_token(self):
        sampler = self.make(8, invalid_token=5)
        self.assertEqual(greedy_tokens(sampler, array("f", [-INF] * 8), 1), [5])

    def test_out(self):
        logits = rows_with_peaks(8, [4, 2])
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        out = SampleResult(tokens=array("i", [-7] * 3), ranks=memoryview(bytearray(8)).cast("i"),
                           logprobs=(ctypes.c_float * 2)(), row_flags=array("I", [9, 9]))
        self.assertIs(self.sampler.sample(logits, [0, 1], out=out), out)
        self.assertEqual((list(out.tokens), list(out.ranks), list(out.row_flags)), ([4, 2, -7], [1, 1], [0, 0]))
        address = array("i", [0, 0])
        self.sampler.sample(logits, [0, 1], out=SampleResult(Pointer(address.buffer_info()[0], (2,), "int32")))
        self.assertEqual(list(address), [4, 2])

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy_out(self):
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        out = SampleResult(tokens=numpy.zeros((2, 1), numpy.int32), logprobs=numpy.zeros(2, numpy.float32))
        self.sampler.sample(rows_with_peaks(8, [4, 2]), [0, 1], out=out)
        self.assertEqual(out.tokens.tolist(), [[4], [2]])
        wrong = numpy.zeros(4, numpy.int32)
        self.raises(ValueError, "out.tokens", self.sampler.sample, rows_with_peaks(8, [4, 2]), [0, 1],
                    out=SampleResult(wrong[::2]))

    def test_wrong_out(self):
        self.sampler.prepare_step([1, 2], [0, 1], GREEDY)
        for kind, name, out in ((ValueError, "out.tokens", SampleResult(array("i", [0]))),
                                (ValueError, "out.tokens", SampleResult(bytes(8))),
                                (TypeError, "out.tokens", SampleResult(array("q", [0, 0]))),
                                (TypeError, "out.tokens", SampleResult([0, 0])),
                                (TypeError, "out.logprobs", SampleResult(array("i", [0, 0]), array("d", [0, 0]))),
                                (TypeError, "out", array("i", [0, 0])),
                                (TypeError, "out", VerifyResult(None, None, None))):
            self.raises(kind, name, self.sampler.sample, rows_with_peaks(8, [4, 2]), [0, 1], out=out)
        self.raises(ValueError, "want", self.sampler.sample, rows_with_peaks(8, [4, 2]), [0, 1], want=["rank"])

    def test_out_without_tokens_is_the_library_s_error(self):
        self.sampler.prepare_step([1], [0], GREEDY)
        with self.assertRaisesRegex(TsError, "tokens"):
            self.sampler.sample(rows_with_peaks(8, [4]), [0], out=SampleResult(None))

    def test_no_requests(self):
        self.sampler.prepare_step([], [], [])
        out = self.sampler.sample(None, [], want=ALL)
        self.assertEqual([len(x) for x in out], [0] * 5)
        out = self.sampler.verify(None, [], [])
        self.assertEqual(len(out.predict), 0)


class Verify(Case):
    PEAKS = [3, 1, 4, 1, 5, 2, 6, 5]  # two requests of four rows, greedy

    def setUp(self):
        super().setUp()
        self.logits = rows_with_peaks(8, self.PEAKS)
        self.sampler.prepare_step([1, 2], [4, 2], GREEDY, rows_per_request=4)

    def check(self, candidates, **options):
        out = self.sampler.verify(self.logits, [4, 2], candidates, positions=[10, 20], want=ALL, **options)
        # Request 0: all drafts right, and the bonus. Request 1: the first right, the second wrong, the third idle.
        self.assertEqual(list(out.accept_length), [4, 2])
        self.assertEqual(list(out.predict), [3, 1, 4, 1, 5, 2, -1, -1])
        self.assertEqual(list(out.accept_index), [0, 1, 2, 3, 4, 5, -1, -1])
        self.assertEqual(list(out.ranks), [1] * 6 + [0] * 2)
        self.assertEqual([x == x for x in out.logprobs], [True] * 6 + [False] * 2)

    def test_candidates(self):
        rows = [[0, 3, 1, 4], [0, 5, 7, 6]]
        flat = array("i", rows[0] + rows[1])
        wide = array("i", rows[0] + [0, 0, 0] + rows[1] + [0, 0, 0])
        self.check(rows)
        self.check(rows[0] + rows[1])
        self.check(flat)
        self.check(memoryview(flat).cast("B").cast("i", [2, 4]))
        self.check(Pointer(wide.buffer_info()[0], (2, 4), "int32", row_stride=7))
        if numpy is not None:
            self.check(numpy.array(rows, numpy.int32))
            self.check(numpy.array(wide, numpy.int32).reshape(2, 7)[:, :4])

    def test_ids_out_of_range_never_match(self):
        out = self.sampler.verify(self.logits, [4, 2], [[0, -1, 1, 4], [0, 5, 2**31 - 1, 6]])
        self.assertEqual(list(out.accept_length), [1, 2])

    def test_out(self):
        out = VerifyResult(array("i", [9] * 8), array("i", [9] * 8), array("i", [9, 9]))
        self.assertIs(self.sampler.verify(self.logits, [4, 2], [[0] * 4] * 2, out=out), out)
        self.assertEqual(list(out.accept_length), [1, 1])

    def test_wrong_candidates(self):
        verify = self.sampler.verify
        self.raises(ValueError, "candidates", verify, self.logits, [4, 2], [[0, 1, 2, 3]])
        self.raises(ValueError, "candidates", verify, self.logits, [4, 2], [[0, 1, 2, 3], [0, 1, 2]])
        for width in (2, 3, 5):
            self.raises(ValueError, "candidates", verify, self.logits, [4, 2], [[0] * width] * 2)
        self.raises(ValueError, "candidates", verify, self.logits, [4, 2], [2**31] * 8)
        self.raises(ValueError, "candidates", verify, self.logits, [4, 2], array("i", [0] * 7))
        self.raises(TypeError, "candidates", verify, self.logits, [4, 2], array("q", [0] * 8))
        self.raises(ValueError, "out.accept_length", verify, self.logits, [4, 2], [0] * 8,
                    out=VerifyResult(array("i", [9] * 8), array("i", [9] * 8), array("i", [9])))

    def test_same_as_sample(self):
        logits = random_rows(8, 8)
        self.sampler.prepare_step([3, 4], [4, 2], [RequestParams(seed=1), RequestParams(0.7, 3, 0.9, 0.1, 2)], 4)
        tokens = list(self.sampler.sample(logits, [4, 2], positions=[3, 8]).tokens)
        candidates = [[0] + tokens[0:3], [0] + tokens[4:7]]
        out = self.sampler.verify(logits, [4, 2], candidates, positions=[3, 8])
        self.assertEqual((list(out.predict), list(out.accept_length)), (tokens, [4, 4]))


class Broadcast(Case):
    VOCAB = 300

    def setUp(self):
        super().setUp()
        self.sampler.prepare_step([1, 2], [0, 1], RequestParams())
        self.logits = random_rows(300, 2)

    def sample(self):
        return self.sampler.sample(self.logits, [0, 1], want=ALL)

    def test_rank_0_reads_and_the_others_are_overwritten(self):
        seen = []
        self.sampler.set_broadcast(2, 0, callback=lambda *call: seen.append(call))
        out = self.sample()
        self.assertEqual([(n, stream) for _, n, stream in seen], [(8, 0)] * 5)
        self.assertEqual(seen[0][0], out.tokens.buffer_info()[0])
        self.sampler.set_broadcast(2, 1, callback=lambda address, n, _: ctypes.memset(address, 1, n))
        self.assertEqual(list(self.sample().tokens), [0x01010101] * 2)
        self.sampler.set_broadcast()
        self.assertEqual(list(self.sample().tokens), list(out.tokens))

    def test_exceptions_come_out(self):
        def fail(*_):
            raise KeyError("wire")
        self.sampler.set_broadcast(2, 0, callback=fail)
        self.assertRaises(KeyError, self.sample)
        self.assertRaises(KeyError, self.sampler.verify, self.logits, [0, 1], [[0]] * 2)
        self.sampler.set_broadcast(1, 0, callback=fail)
        self.sample()

    def test_wrong_arguments(self):
        for options in (dict(n_ranks=2), dict(n_ranks=2, rank=2, callback=print),
                        dict(n_ranks=2, callback=print, nccl_comm=8)):
            with self.assertRaisesRegex(TsError, "ts_broadcast"):
                self.sampler.set_broadcast(**options)
        with self.assertRaises(TsError) as caught:
            self.sampler.set_broadcast(2, 0, nccl_comm=8)
        self.assertEqual(caught.exception.status, tssample.ERROR_UNSUPPORTED)
        self.raises(TypeError, "callback", self.sampler.set_broadcast, 2, 0, callback=3)
        self.raises(ValueError, "nccl_comm", self.sampler.set_broadcast, 2, 0, nccl_comm=-1)


class Determinism(Case):
    VOCAB = 300

    def test_alone_or_in_a_batch(self):
        logits = random_rows(300, 6)
        params = [RequestParams(seed=11), RequestParams(0.5, 20, seed=12), RequestParams(top_p=0.7, seed=13), GREEDY,
                  RequestParams(min_p=0.05, seed=14), RequestParams(1.5, 40, 0.9, 0.01, 15)]
        slots, positions = [4, 9, 0, 1, 15, 7], [0, 5, 2**40, 3, 77, 1]
        self.sampler.prepare_step(range(6), slots, params)
        together = self.sampler.sample(logits, slots, positions=positions, want=ALL)
        for r in range(6):
            other = self.make(300)
            other.prepare_step([1000 + r], [3], params[r])
            alone = other.sample(logits[300 * r:300 * (r + 1)], [3], positions=[positions[r]], want=ALL)
            self.assertEqual([x[0] for x in alone], [x[r] for x in together])
        # Any subset in any order.
        some = self.sampler.sample(logits[300 * 2:300 * 3] + logits[:300], [0, 4], positions=[2**40, 0])
        self.assertEqual(list(some.tokens), [together.tokens[2], together.tokens[0]])

    def test_position_of_a_row_is_offset_plus_index(self):
        logits = random_rows(300, 3)
        self.sampler.prepare_step([1], [0], RequestParams(seed=4), rows_per_request=3)
        chain = list(self.sampler.sample(logits, [0], positions=[50]).tokens)
        self.sampler.prepare_step([1], [0], None)
        single = [self.sampler.sample(logits[300 * j:300 * (j + 1)], [0], positions=[50 + j]).tokens[0]
                  for j in range(3)]
        self.assertEqual(chain, single)

    def test_positions_and_seeds_matter(self):
        flat = array("f", [0.0] * 300)
        self.sampler.prepare_step([1], [0], RequestParams(seed=4))
        self.assertGreater(len({self.sampler.sample(flat, [0], positions=[p]).tokens[0] for p in range(50)}), 30)
        tokens = set()
        for seed in range(50):
            self.sampler.prepare_step([2 + seed], [0], RequestParams(seed=seed))
            tokens.add(self.sampler.sample(flat, [0]).tokens[0])
        self.assertGreater(len(tokens), 30)

    def test_sampler_seed(self):
        def token(seed, request):
            sampler = self.make(300, seed=seed)
            sampler.prepare_step([request], [0], RequestParams())
            return [sampler.sample(array("f", [0.0] * 300), [0], positions=[p]).tokens[0] for p in range(8)]
        self.assertEqual(token(2**64 - 1, 7), token(2**64 - 1, 7))
        self.assertNotEqual(token(1, 7), token(2, 7))
        self.assertNotEqual(token(1, 7), token(1, 8))


class Parameters(Case):
    def test_defaults_sample_from_everything(self):
        self.sampler.prepare_step([1], [0], RequestParams())
        self.assertEqual(self.sampler.sample(rows_with_peaks(8, [1]), [0], want=["n_kept"]).n_kept[0], 8)

    def test_any_top_k(self):
        for top_k, kept in ((1, 1), (3, 3), (8, 8), (9, 8), (0, 8), (-1, 8), (2**30, 8), (2**31, 8), (2**32 + 3, 8),
                            (-2**40, 8)):
            self.sampler.prepare_step([top_k % 2**64], [0], RequestParams(top_k=top_k))
            self.assertEqual(self.sampler.sample(array("f", range(8)), [0], want=["n_kept"]).n_kept[0], kept)

    def test_wrong_values(self):
        self.raises(TypeError, "temperature", RequestParams, "hot")
        self.raises(TypeError, "top_p", RequestParams, top_p=None)
        self.raises(TypeError, "top_k", RequestParams, top_k=1.5)
        self.raises(ValueError, "seed", RequestParams, seed=-1)
        self.raises(ValueError, "seed", RequestParams, seed=2**64)
        for wrong in (dict(temperature=-1), dict(temperature=NAN), dict(temperature=1e300), dict(top_p=NAN),
                      dict(min_p=NAN), dict(min_p=1.5)):
            with self.assertRaises(TsError) as caught:
                self.sampler.prepare_step([1, 2], [0, 1], [GREEDY, RequestParams(**wrong)])
            self.assertEqual((caught.exception.status, caught.exception.status_name),
                             (tssample.ERROR_INVALID_ARGUMENT, "TS_ERROR_INVALID_ARGUMENT"))
            self.assertIn("params[1]." + next(iter(wrong)), caught.exception.message)

    def test_known_requests_need_no_params(self):
        self.sampler.prepare_step([1], [0], GREEDY)
        self.sampler.prepare_step([1], [0], None)
        self.sampler.prepare_step([1], [0], RequestParams())  # not looked at
        self.assertEqual(self.sampler.step_route(), "greedy")
        with self.assertRaisesRegex(TsError, "params"):
            self.sampler.prepare_step([2], [0], None)
        self.sampler.release_slots([0])
        self.sampler.prepare_step([1], [0], RequestParams())
        self.assertEqual(self.sampler.step_route(), "plain")
