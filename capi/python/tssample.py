# SPDX-License-Identifier: Apache-2.0
"""libtssample from Python: logits in, tokens out, with ctypes and the standard library alone.

    with tssample.Sampler(vocab_size=4) as sampler:
        sampler.prepare_step([7], [0], tssample.RequestParams(temperature=0.8, top_k=50, seed=1))
        result = sampler.sample(array.array("f", [1, 2, 4, 3]), [0], positions=[0], want=["logprobs"])
        print(result.tokens[0], result.logprobs[0])

What each argument means is written in tssample.h. Arrays may be
  - numpy arrays and whatever else has __array_interface__ (torch: tensor.numpy(); bf16 tensors have none:
    tensor.view(torch.int16).numpy() with dtype="bf16"),
  - objects with the buffer protocol: array.array, bytes, bytearray, memoryview, mmap,
  - objects with __cuda_array_interface__, for a sampler on a GPU,
  - Pointer(address, shape, dtype, row_stride),
  - lists of integers (of lists, for candidates and masks), where the array is in host memory.
Nothing is copied but lists. Every array is held until its call returns; on a GPU the caller keeps the memory alive
until the stream has passed it. One sampler serves one call at a time, from any thread.
"""
import ctypes
import operator
from array import array
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from tssample_c import (ABI_VERSION, BF16, CALL_SAMPLE, CALL_VERIFY, CONFIG_CLUSTERS, CONFIG_PROGRAMMATIC_LAUNCH,
                        DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA, ERROR_CUDA, ERROR_DEVICE, ERROR_INTERNAL,
                        ERROR_INVALID_ARGUMENT, ERROR_NOT_PREPARED, ERROR_OUT_OF_MEMORY, ERROR_STRUCT_SIZE,
                        ERROR_UNSUPPORTED, FP16, FP32, INT32, INT64, MAX_VOCAB, OK, PARAMS_SEEDED, ROW_EMPTY, ROW_INF,
                        ROW_NAN, Capabilities, Library, TsError, call_number, load)  # noqa: F401
from tssample_c import Broadcast, BroadcastCallback, Config, Draft, Params, Rows, SampleOut, Step, VerifyOut
from tssample_memory import Pointer, host_list, memory


# ---- What goes in and out -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RequestParams:
    """How one request is sampled. RequestParams(): the whole distribution, temperature 1, a seed from the sampler's."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: Optional[int] = None

    def __post_init__(self):
        for name in ("temperature", "top_p", "min_p"):
            try:
                if isinstance(getattr(self, name), (str, bytes, bytearray)):
                    raise TypeError
                float(getattr(self, name))
            except (TypeError, ValueError, OverflowError):
                raise TypeError(f"{name}: a number, not {getattr(self, name)!r}") from None
        top_k = _integer("top_k", self.top_k, -2**63, 2**63 - 1)
        struct = Params(temperature=float(self.temperature), top_p=float(self.top_p), min_p=float(self.min_p),
                        top_k=max(-1, min(top_k, 2**31 - 1)))  # both ends of the range mean "off"
        if self.seed is not None:
            struct.flags, struct.seed = PARAMS_SEEDED, _uint64("seed", self.seed)
        object.__setattr__(self, "_packed", bytes(struct))


class SampleResult(NamedTuple):
    """One entry a row. As `out`: the buffers to write; None where a result is not wanted."""

    tokens: Any
    logprobs: Any = None
    ranks: Any = None
    n_kept: Any = None
    row_flags: Any = None


class VerifyResult(NamedTuple):
    """One entry a row; accept_length: one a request. As `out`: the buffers to write; None where not wanted."""

    predict: Any
    accept_index: Any
    accept_length: Any
    logprobs: Any = None
    ranks: Any = None
    n_kept: Any = None
    row_flags: Any = None


_OPTIONAL = ("logprobs", "ranks", "n_kept", "row_flags")
_CODES = {"logprobs": "f", "row_flags": "I"}  # array typecodes of the results; the others are "i"
_OUT_TYPES = {"f": (("f4",), "float32"), "I": (("u4",), "uint32"), "i": (("i4",), "int32")}
_INDEX = {"i4": INT32, "i8": INT64}
_INDEX_TYPES = (("i4", "i8"), "int32 or int64")
_MASK_TYPES = (("i4", "u4"), "32-bit integers")
_ID_TYPES = (("u8", "i8"), "64-bit integers")


def _stream(stream):
    """A cudaStream_t: its address as an integer, or None for the default stream."""
    return None if stream is None else _uint64("stream", stream)


class Sampler:
    """Owns a ts_sampler. Close it with close(), a with block, or by dropping it.

    device: "auto", "cpu", "cuda" or "cuda:N". library: a path, or what load() returned. The other arguments are
    fields of ts_config. Raises TsError, ValueError or TypeError; messages name the argument. OSError: no library.
    """

    _handle = None

    def __init__(self, vocab_size, *, device="auto", n_slots=0, max_requests=0, max_rows_per_request=0,
                 invalid_token=0, seed=0, programmatic_launch=False, clusters=False, max_graphs=0, library=None):
        kind, _, ordinal = str(device).partition(":")
        if kind not in ("auto", "cpu", "cuda") or (":" in str(device) and not (kind == "cuda" and ordinal.isdecimal())):
            raise ValueError(f'device: "auto", "cpu", "cuda" or "cuda:N", not {device!r}')
        self.library = library if isinstance(library, Library) else load(library)
        self._c = self.library.c
        self.vocab_size = _int32("vocab_size", vocab_size)
        config = Config(device=("auto", "cpu", "cuda").index(kind), vocab_size=self.vocab_size,
                         device_ordinal=_int32("device", ordinal and int(ordinal) or 0),
                         n_slots=_int32("n_slots", n_slots), max_requests=_int32("max_requests", max_requests),
                         max_rows_per_request=_int32("max_rows_per_request", max_rows_per_request),
                         invalid_token=_int32("invalid_token", invalid_token), seed=_uint64("seed", seed),
                         flags=(CONFIG_PROGRAMMATIC_LAUNCH if programmatic_launch else 0) |
                         (CONFIG_CLUSTERS if clusters else 0),
                         max_graphs=_int32("max_graphs", max_graphs))
        handle = ctypes.c_void_p()
        self.library.check(self._c.ts_sampler_create(ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle
        self._on_cuda = self._c.ts_sampler_device(handle) == DEVICE_CUDA
        self._rows_per_request = 1
        self._step, self._rows, self._draft = Step(), Rows(), Draft()
        self._sample_out, self._verify_out = SampleOut(), VerifyOut()
        self._broadcast, self._broadcast_errors = None, []

    def __copy__(self):
        raise TypeError("a Sampler cannot be copied: it owns its ts_sampler")

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce_ex__(self, protocol):
        return self.__copy__()

    @property
    def device(self):
        """Where it runs: "cpu" or "cuda"."""
        return "cuda" if self._on_cuda else "cpu"

    def close(self):
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._c.ts_sampler_destroy(handle)

    __del__ = close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def version(self):
        return self.library.version()

    def capabilities(self):
        return self.library.capabilities()

    def capture_variants(self, call):
        return self.library.capture_variants(call)

    def _open(self):
        if self._handle is None:
            raise ValueError("the sampler is closed")
        return self._handle

    # ---- Steps
    def prepare_step(self, request_ids, slots, params=None, rows_per_request=1, stream=0):
        """Says which requests the next calls serve.

        request_ids   a list of integers below 2**64, or an array of uint64 or int64, whose bits are taken as they are.
        params        one RequestParams for all, one for each request, or None when no request is new in its slot.
        """
        handle = self._open()
        ids = host_list("request_ids", request_ids, "Q", _ID_TYPES)
        slots = host_list("slots", slots, "q", _INDEX_TYPES)
        n = ids.count
        _expect("slots", slots.count, n, "request ids")
        packed = None
        if isinstance(params, RequestParams):
            packed = params._packed * n
        elif params is not None:
            try:
                packed = b"".join([p._packed for p in params])
            except (TypeError, AttributeError):
                raise TypeError("params: RequestParams, a sequence of them, or None") from None
            _expect("params", len(packed) // ctypes.sizeof(Params), n, "request ids")
        if packed:
            packed = array("Q", packed)  # bytes as they are, at an 8-byte boundary
        step = self._step
        step.n_requests, step.rows_per_request = n, _int32("rows_per_request", rows_per_request)
        step.request_ids, step.slots, step.slots_type = ids.address, slots.address, _INDEX[slots.kind]
        step.params = packed.buffer_info()[0] if packed else None
        self.library.check(self._c.ts_sampler_prepare_step(handle, ctypes.byref(step), _stream(stream)))
        self._rows_per_request = step.rows_per_request or 1

    def release_slots(self, slots):
        handle = self._open()
        slots = host_list("slots", slots, "q", _INDEX_TYPES)
        self.library.check(self._c.ts_sampler_release_slots(handle, slots.address, _INDEX[slots.kind], slots.count))

    def step_route(self):
        return self._c.ts_sampler_step_route(self._open()).decode()

    def step_variant(self, call):
        """The capture variant that serves the prepared step's "sample" or "verify" call; None without a step."""
        name = self._c.ts_sampler_step_variant(self._open(), call_number(call))
        return name and name.decode()

    def prepare_capture(self, n_requests, variant, rows_per_request=1, stream=0):
        if not isinstance(variant, str):
            raise TypeError(f"variant: a name that capture_variants() gives, not {variant!r}")
        self.library.check(self._c.ts_sampler_prepare_capture(
            self._open(), _int32("n_requests", n_requests), _int32("rows_per_request", rows_per_request),
            variant.encode(), _stream(stream)))
        self._rows_per_request = rows_per_request

    def reset_capture(self, stream=0):
        self.library.check(self._c.ts_sampler_reset_capture(self._open(), _stream(stream)))

    # ---- Tensor-parallel agreement
    def set_broadcast(self, n_ranks=1, rank=0, *, callback=None, nccl_comm=None):
        """Sends the results of all later calls from rank 0 to the others; set_broadcast() turns it off.

        callback    called as callback(address, n_bytes, stream) for each array, to read or to write it in place; what
                    it raises comes out of sample or verify.
        nccl_comm   address of an ncclComm_t.
        """
        handle, errors = self._open(), self._broadcast_errors

        def guarded(_, address, n_bytes, stream):
            try:
                callback(address, n_bytes, stream or 0)
                return OK
            except BaseException as error:  # not through C
                errors.append(error)
                return ERROR_INTERNAL

        broadcast = Broadcast(n_ranks=_int32("n_ranks", n_ranks), rank=_int32("rank", rank),
                              nccl_comm=None if nccl_comm is None else _uint64("nccl_comm", nccl_comm))
        if callback is not None:
            if not callable(callback):
                raise TypeError(f"callback: a function, not {type(callback).__name__}")
            broadcast.callback = BroadcastCallback(guarded)
        self.library.check(self._c.ts_sampler_set_broadcast(handle, ctypes.byref(broadcast)))
        self._broadcast = broadcast  # alive as long as the sampler may call it

    def _check_call(self, status):
        if self._broadcast_errors:
            raise self._broadcast_errors.pop()
        self.library.check(status)

    # ---- Calls
    def sample(self, logits, slots, *, positions=None, allow_mask=None, n_valid=0, vocab=0, dtype=None,
               rows_per_request=0, want=(), out=None, n_bad_rows=None, stream=0):
        """Samples a token for every row of the requests in `slots`; returns a SampleResult.

        logits   [rows, vocab] or [requests, rows_per_request, vocab], any row stride; or flat, packed, with rows of
                 `vocab` (default: vocab_size) elements. float32, float16, or with dtype="bf16" uint16 or raw bytes.
        rows_per_request   default: that of the prepared step.
        allow_mask   32-bit words [rows, words], a bit for an id, bit 0 of word 0 for id 0; ids past them are forbidden.
        want     names of the results wanted beside tokens, allocated as array.array: "logprobs", "ranks", "n_kept",
                 "row_flags". On a GPU give `out` instead.
        out      instead of `want`: SampleResult of buffers to write, at least one entry a row.
        n_bad_rows   buffer of one uint32, to which the number of rows with flags is added.
        """
        handle = self._open()
        n, rows, keep = self._fill_rows(logits, slots, positions, allow_mask, n_valid, vocab, dtype, rows_per_request)
        out, writes = self._fill_out(SampleResult, self._sample_out, out, want, n_bad_rows, n, rows)
        self._check_call(self._c.ts_sampler_sample(handle, ctypes.byref(self._rows), ctypes.byref(self._sample_out),
                                                   _stream(stream)))
        del keep, writes  # held until here: the call has read and written them
        return out

    def verify(self, logits, slots, candidates, *, positions=None, allow_mask=None, n_valid=0, vocab=0, dtype=None,
               rows_per_request=0, want=(), out=None, n_bad_rows=None, stream=0):
        """Judges drafted chains; returns a VerifyResult.

        candidates   int32 [requests, rows_per_request]: the last committed token, then the drafts. Others: as sample.
        """
        handle = self._open()
        n, rows, keep = self._fill_rows(logits, slots, positions, allow_mask, n_valid, vocab, dtype, rows_per_request)
        table = memory("candidates", candidates, self._on_cuda, "i", (("i4",), "int32"))
        chain = self._rows.rows_per_request
        self._draft.candidates, width, self._draft.candidates_stride = table.matrix(n, chain)
        if n and width != chain:
            raise ValueError(f"candidates: rows of {width} elements, but {chain} rows per request")
        out, writes = self._fill_out(VerifyResult, self._verify_out, out, want, n_bad_rows, n, rows)
        self._check_call(self._c.ts_sampler_verify(handle, ctypes.byref(self._rows), ctypes.byref(self._draft),
                                                   ctypes.byref(self._verify_out), _stream(stream)))
        del keep, writes
        return out

    def _fill_rows(self, logits, slots, positions, allow_mask, n_valid, vocab, dtype, rows_per_request):
        """Fills ts_rows; returns the numbers of requests and rows, and what must stay alive during the call."""
        c, cuda = self._rows, self._on_cuda
        slots = memory("slots", slots, cuda, "q", _INDEX_TYPES).flat()
        n = c.n_requests = slots.count
        c.slots, c.slots_type = slots.address, _INDEX[slots.kind]
        c.rows_per_request = _count("rows_per_request", rows_per_request) or self._rows_per_request
        rows = n * c.rows_per_request
        c.n_valid = _count("n_valid", n_valid)
        width = _count("vocab", vocab)
        if n:
            logits, c.logits_type = _logits(logits, cuda, dtype)
            c.logits, c.vocab, c.row_stride = logits.matrix(rows, width, self.vocab_size)
            if width and width != c.vocab:
                raise ValueError(f"logits: rows of {c.vocab} elements, but vocab is {width}")
        else:
            c.logits, c.vocab, c.row_stride, c.logits_type = None, width, 0, FP32
        c.positions, c.positions_type = None, INT32
        if positions is not None:
            positions = memory("positions", positions, cuda, "q", _INDEX_TYPES).flat()
            _expect("positions", positions.count, n, "slots")
            c.positions, c.positions_type = positions.address, _INDEX[positions.kind]
        c.allow_mask, c.mask_words, c.mask_stride = None, 0, 0
        if allow_mask is not None and n:
            words, by_hand = (c.vocab + 31) // 32, isinstance(allow_mask, (list, tuple))
            allow_mask = memory("allow_mask", allow_mask, cuda, "I", _MASK_TYPES, "u4")
            c.allow_mask, c.mask_words, c.mask_stride = allow_mask.matrix(rows, 0, words)
            if by_hand and c.mask_words > words:  # arrays may have words to spare
                raise ValueError(f"allow_mask: {c.mask_words} words a row; {c.vocab} ids are {words}, one bit an id")
        return n, rows, (logits, slots, positions, allow_mask)

    def _fill_out(self, result, struct, out, want, n_bad_rows, n, rows):
        """Fills an output struct with the buffers of `out`, or with new ones."""
        if out is None:
            if self._on_cuda:
                raise ValueError("out: give the device buffers to write; on a GPU none are allocated here")
            try:
                wanted = (want,) if isinstance(want, str) else tuple(want)
            except TypeError:
                raise TypeError(f"want: names of results, not {want!r}") from None
            unknown = [name for name in wanted if name not in _OPTIONAL]
            if unknown:
                raise ValueError(f"want: {unknown[0]!r} is none of {', '.join(_OPTIONAL)}")
            out = result(**{name: array(_CODES.get(name, "i"), bytes(4 * (n if name == "accept_length" else rows)))
                            for name in result._fields if name not in _OPTIONAL or name in wanted})
        elif not isinstance(out, result):
            raise TypeError(f"out: a {result.__name__}, not {type(out).__name__}")
        elif want:
            raise ValueError("want: not together with out, whose buffers say what is wanted")
        held = []
        for name, buffer in zip(result._fields, out):
            address = None
            if buffer is not None:
                m = memory(f"out.{name}", buffer, self._on_cuda, None, _OUT_TYPES[_CODES.get(name, "i")], writable=True)
                address = m.room(n if name == "accept_length" else rows)
                held.append(m)
            setattr(struct, name, address)
        struct.n_bad_rows = None
        if n_bad_rows is not None:
            counter = memory("n_bad_rows", n_bad_rows, self._on_cuda, None, (("u4",), "uint32"), writable=True)
            struct.n_bad_rows = counter.room(1)
            held.append(counter)
        return out, held


_LOGITS = {"fp32": (FP32, ("f4",)), "fp16": (FP16, ("f2", "u2", "i2")), "bf16": (BF16, ("bf16", "V2", "u2", "i2"))}
_LONG_NAMES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def _logits(source, cuda, dtype):
    """The memory of logits and its TS_* element type."""
    if dtype is not None:
        name = _LONG_NAMES.get(dtype, dtype) if isinstance(dtype, str) else None
        if name not in _LOGITS:
            raise ValueError(f'dtype: "fp32", "bf16" or "fp16", not {dtype!r}')
        code, kinds = _LOGITS[name]
        return memory("logits", source, cuda, None, (kinds, name), kinds[0]), code
    m = memory("logits", source, cuda, None, (("f4", "f2", "bf16"), 'float32, float16, or dtype="bf16"'))
    return m, {"f4": FP32, "f2": FP16, "bf16": BF16}[m.kind]


def _expect(name, count, n, of):
    if count != n:
        raise ValueError(f"{name}: {count} entries for {n} {of}")


def _integer(name, value, low, high):
    """An integer that fits its C field; ctypes would cut it silently."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: an integer, not {type(value).__name__}") from None
    if not low <= value <= high:
        raise ValueError(f"{name} = {value}: outside {low}..{high}")
    return value


def _int32(name, value):
    return _integer(name, value, -2**31, 2**31 - 1)


def _count(name, value):
    return _integer(name, value, 0, 2**31 - 1)


def _uint64(name, value):
    return _integer(name, value, 0, 2**64 - 1)
