# SPDX-License-Identifier: Apache-2.0
"""tssample.h in ctypes: its constants, structs and functions, and how the library is found and loaded."""
import ctypes
import glob
import os
from typing import NamedTuple, Tuple

# ---- Constants of tssample.h --------------------------------------------------------------------------------------
ABI_VERSION = 0
(OK, ERROR_INVALID_ARGUMENT, ERROR_STRUCT_SIZE, ERROR_NOT_PREPARED, ERROR_UNSUPPORTED, ERROR_OUT_OF_MEMORY,
 ERROR_DEVICE, ERROR_CUDA, ERROR_INTERNAL) = range(9)
DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA = range(3)
FP32, BF16, FP16 = range(3)
INT32, INT64 = range(2)
MAX_VOCAB = 4194303
CONFIG_PROGRAMMATIC_LAUNCH = 1
CONFIG_CLUSTERS = 2
PARAMS_SEEDED = 1
ROW_NAN, ROW_INF, ROW_EMPTY = 1, 2, 4
CALL_SAMPLE, CALL_VERIFY = range(2)

_i32, _u32, _i64, _u64 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
_f32, _ptr, _text = ctypes.c_float, ctypes.c_void_p, ctypes.c_char_p


class _Struct(ctypes.Structure):
    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


def _struct(name, *fields):
    return type(name, (_Struct,), {"_fields_": [("struct_size", _u32), *fields]})


_Capabilities = _struct("ts_capabilities", ("devices", _u32), ("n_cuda_devices", _i32), ("auto_device", _i32),
                        ("logits_types", _u32), ("index_types", _u32), ("max_vocab", _i32), ("abi_version", _i32))
Config = _struct("ts_config", ("device", _i32), ("device_ordinal", _i32), ("vocab_size", _i32), ("n_slots", _i32),
                  ("max_requests", _i32), ("max_rows_per_request", _i32), ("invalid_token", _i32), ("seed", _u64),
                  ("flags", _u64), ("max_graphs", _i32), ("reserved", _i32))
Params = _struct("ts_request_params", ("flags", _u32), ("seed", _u64), ("temperature", _f32), ("top_k", _i32),
                  ("top_p", _f32), ("min_p", _f32))
Step = _struct("ts_step", ("n_requests", _i32), ("rows_per_request", _i32), ("slots_type", _i32),
                ("request_ids", _ptr), ("slots", _ptr), ("params", _ptr), ("params_stride", _u32), ("reserved", _u32))
Rows = _struct("ts_rows", ("n_requests", _i32), ("rows_per_request", _i32), ("vocab", _i32), ("logits", _ptr),
                ("row_stride", _i64), ("logits_type", _i32), ("n_valid", _i32), ("slots", _ptr), ("slots_type", _i32),
                ("positions_type", _i32), ("positions", _ptr), ("allow_mask", _ptr), ("mask_words", _i32),
                ("reserved", _i32), ("mask_stride", _i64))
SampleOut = _struct("ts_sample_out", ("reserved", _u32), ("tokens", _ptr), ("logprobs", _ptr), ("ranks", _ptr),
                     ("n_kept", _ptr), ("row_flags", _ptr), ("n_bad_rows", _ptr))
Draft = _struct("ts_draft", ("reserved", _u32), ("candidates", _ptr), ("candidates_stride", _i64))
VerifyOut = _struct("ts_verify_out", ("reserved", _u32), ("predict", _ptr), ("accept_index", _ptr),
                     ("accept_length", _ptr), ("logprobs", _ptr), ("ranks", _ptr), ("n_kept", _ptr),
                     ("row_flags", _ptr), ("n_bad_rows", _ptr))
BroadcastCallback = ctypes.CFUNCTYPE(_i32, _ptr, _ptr, ctypes.c_size_t, _ptr)  # user, data, n_bytes, stream
Broadcast = _struct("ts_broadcast", ("n_ranks", _i32), ("rank", _i32), ("reserved", _u32), ("nccl_comm", _ptr),
                    ("callback", BroadcastCallback), ("user", _ptr))

_FUNCTIONS = {  # name: (result, arguments)
    "ts_status_string": (_text, [_i32]),
    "ts_last_error": (_text, []),
    "ts_version": (_i32, []),
    "ts_version_string": (_text, []),
    "ts_get_capabilities": (_i32, [_ptr]),
    "ts_sampler_create": (_i32, [_ptr, _ptr]),
    "ts_sampler_destroy": (None, [_ptr]),
    "ts_sampler_device": (_i32, [_ptr]),
    "ts_sampler_prepare_step": (_i32, [_ptr, _ptr, _ptr]),
    "ts_sampler_release_slots": (_i32, [_ptr, _ptr, _i32, _i32]),
    "ts_sampler_step_route": (_text, [_ptr]),
    "ts_sampler_sample": (_i32, [_ptr, _ptr, _ptr, _ptr]),
    "ts_sampler_verify": (_i32, [_ptr, _ptr, _ptr, _ptr, _ptr]),
    "ts_capture_variant_count": (_i32, [_i32]),
    "ts_capture_variant_name": (_text, [_i32, _i32]),
    "ts_sampler_prepare_capture": (_i32, [_ptr, _i32, _i32, _text, _ptr]),
    "ts_sampler_reset_capture": (_i32, [_ptr, _ptr]),
    "ts_sampler_step_variant": (_text, [_ptr, _i32]),
    "ts_sampler_set_broadcast": (_i32, [_ptr, _ptr]),
}


class TsError(Exception):
    """A call returned an error status. The sampler is as it was before the call."""

    def __init__(self, status, status_name, message):
        super().__init__(f"{status_name}: {message}")
        self.status, self.status_name, self.message = status, status_name, message


# ---- The library --------------------------------------------------------------------------------------------------
class Capabilities(NamedTuple):
    devices: Tuple[str, ...]  # backends in this build: "cpu", "cuda"
    n_cuda_devices: int
    auto_device: str
    logits_types: Tuple[str, ...]
    index_types: Tuple[str, ...]
    max_vocab: int
    abi_version: int


def _bits(mask, names):
    return tuple(name for bit, name in names.items() if mask >> bit & 1)


class Library:
    """A loaded libtssample: what can be asked without a sampler."""

    def __init__(self, path):
        self.path = path
        self.c = ctypes.CDLL(path)
        try:
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(self.c, name)
                function.restype, function.argtypes = result, arguments
        except AttributeError as error:
            raise OSError(f"{path} is not a libtssample of this version: {error}") from None
        abi = self.capabilities().abi_version
        if abi != ABI_VERSION:
            raise OSError(f"{path} has ABI version {abi}; this tssample.py needs {ABI_VERSION}")

    def check(self, status):
        if status != OK:
            name = self.c.ts_status_string(status).decode()
            raise TsError(status, name, self.c.ts_last_error().decode("utf-8", "replace"))

    def version(self):
        return self.c.ts_version_string().decode()

    def capabilities(self):
        out = _Capabilities()
        self.check(self.c.ts_get_capabilities(ctypes.byref(out)))
        devices = {DEVICE_CPU: "cpu", DEVICE_CUDA: "cuda"}
        return Capabilities(_bits(out.devices, devices), out.n_cuda_devices, devices[out.auto_device],
                            _bits(out.logits_types, {FP32: "fp32", BF16: "bf16", FP16: "fp16"}),
                            _bits(out.index_types, {INT32: "int32", INT64: "int64"}), out.max_vocab, out.abi_version)

    def capture_variants(self, call):
        """The names of the graphs worth capturing for "sample" or "verify"."""
        call = call_number(call)
        return [self.c.ts_capture_variant_name(call, i).decode() for i in range(self.c.ts_capture_variant_count(call))]


_loaded = {}


def load(path=None):
    """The library at `path`, at $TSSAMPLE_LIBRARY, beside this file, in the source tree's build, in the lib folder of the
    prefix that this file is installed in, or the loader's."""
    path = os.fspath(path) if path is not None else os.environ.get("TSSAMPLE_LIBRARY") or None
    if path not in _loaded:
        found = path
        if found is None:
            here = os.path.dirname(os.path.abspath(__file__))
            build = os.path.join(here, os.pardir, os.pardir, "build")
            lib = os.path.join(here, os.pardir, os.pardir, os.pardir, "lib*")  # <prefix>/share/tssample/python
            folders = [here, os.path.join(build, "release"), os.path.join(build, "cpu")]
            folders += sorted(glob.glob(lib) + glob.glob(os.path.join(lib, "*-linux-gnu")))
            files = [os.path.normpath(os.path.join(folder, f"libtssample.so.{ABI_VERSION}")) for folder in folders]
            found = next(filter(os.path.exists, files), f"libtssample.so.{ABI_VERSION}")
        _loaded[path] = Library(found)
    return _loaded[path]


def call_number(call):
    try:
        return {"sample": CALL_SAMPLE, "verify": CALL_VERIFY}[call]
    except (KeyError, TypeError):
        raise ValueError(f'call: "sample" or "verify", not {call!r}') from None
