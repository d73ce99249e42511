# SPDX-License-Identifier: Apache-2.0
"""Turns what callers pass as arrays into address, element kind, shape and strides; nothing is copied but lists."""
import ctypes
import operator
import sys
from array import array
from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Pointer:
    """Memory by address, on the host or on the sampler's GPU. The caller keeps it alive and vouches for its size."""

    address: int
    shape: Tuple[int, ...]
    dtype: str  # "fp32", "bf16", "fp16", "int32", "uint32", "int64" or "uint64"
    row_stride: int = 0  # elements from one entry of the last axis but one to the next; 0: packed


_POINTER_KINDS = {"fp32": "f4", "float32": "f4", "bf16": "bf16", "bfloat16": "bf16", "fp16": "f2", "float16": "f2",
                  "int32": "i4", "uint32": "u4", "int64": "i8", "uint64": "u8"}
_LIST_KINDS = {"i": "i4", "I": "u4", "q": "i8", "Q": "u8"}
_BYTES = ("u1", "i1", "S1")  # may be read as the one type that is meant
_FORMATS = {**dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQN", "u"), **dict.fromkeys("efd", "f"), "c": "S"}
_BIG_ENDIAN = ">!"


class Memory:
    """One array. kind: "f4", "f2", "bf16", "i4", ...; strides in bytes; keep: whatever owns the memory."""

    __slots__ = ("name", "address", "kind", "shape", "strides", "keep")

    def __init__(self, name, address, kind, shape, strides, keep):
        self.name, self.address, self.kind, self.keep = name, address, kind, keep
        self.shape, self.strides = shape, strides or _packed(shape, _size(kind))

    @property
    def count(self):
        return _product(self.shape)

    def _is_packed(self):
        """Whether the elements lie one after the other. Strides along axes of one entry mean nothing."""
        packed = _packed(self.shape, _size(self.kind))
        return not self.count or all(s == p or n == 1 for s, p, n in zip(self.strides, packed, self.shape))

    def flat(self):
        """This, if it is one contiguous line of elements."""
        if len(self.shape) != 1:
            raise ValueError(f"{self.name}: one axis is needed, not {len(self.shape)}")
        if not self._is_packed():
            raise ValueError(f"{self.name}: not contiguous (stride {self.strides[0]} bytes)")
        return self

    def room(self, n):
        """The address, if n elements lie there one after the other."""
        if not self._is_packed():
            raise ValueError(f"{self.name}: not contiguous")
        if self.count < n:
            raise ValueError(f"{self.name}: {self.count} entries, {n} are needed")
        return self.address

    def matrix(self, rows, width=0, flat_width=0):
        """Address, row width and row stride in elements of a table of `rows` rows.

        A flat array is packed rows of `width` or else `flat_width` elements. Axes before the last must form one.
        """
        size, shape, strides = _size(self.kind), self.shape, self.strides
        if len(shape) == 1:
            width = width or flat_width
            if self.flat().count != rows * width:
                raise ValueError(f"{self.name}: {shape[0]} elements; {rows} rows of {width} are {rows * width}")
            return self.address, width, width
        if not shape or _product(shape[:-1]) != rows:
            raise ValueError(f"{self.name}: shape {tuple(shape)}, but {rows} rows are needed")
        if rows == 0:
            return self.address, shape[-1], shape[-1]
        if shape[-1] == 0:
            raise ValueError(f"{self.name}: rows of no elements")
        if strides[-1] != size and shape[-1] > 1:
            raise ValueError(f"{self.name}: the elements of a row are not contiguous")
        stride = 0  # bytes from row to row; not known before an axis with more than one entry
        entries = 1
        for axis in range(len(shape) - 2, -1, -1):
            if shape[axis] > 1:
                if entries > 1 and strides[axis] != stride * entries:
                    raise ValueError(f"{self.name}: its first axes do not have one stride from row to row")
                stride = strides[axis] if entries == 1 else stride
                entries *= shape[axis]
        if rows > 1 and (stride < shape[-1] * size or stride % size):
            raise ValueError(f"{self.name}: rows {stride} bytes apart; at least {shape[-1] * size} in steps of {size}")
        return self.address, shape[-1], stride // size if rows > 1 else shape[-1]


def memory(name, source, on_cuda, list_code, types, read_bytes_as=None, writable=False):
    """The Memory of an argument: in device memory when on_cuda, else on the host.

    list_code       array typecode that lists of integers are turned into; None: lists are not taken.
    types           the kinds of element that are taken, and these in words.
    read_bytes_as   kind that bytes are taken as; None: bytes are not taken.
    """
    if isinstance(source, Pointer):
        m = _from_pointer(name, source)
    elif _is_masked(source):
        raise TypeError(f"{name}: masked arrays are not taken")
    elif getattr(source, "__cuda_array_interface__", None) is not None:
        if not on_cuda:
            raise TypeError(f"{name}: CUDA memory, but host memory is needed here")
        m = _from_interface(name, source, source.__cuda_array_interface__, writable)
    elif on_cuda:
        raise TypeError(f"{name}: host memory, but the sampler runs on a GPU: __cuda_array_interface__ or Pointer")
    elif isinstance(source, (list, tuple, range)) and list_code is not None:
        m = _from_list(name, source, list_code)
    else:
        interface = getattr(source, "__array_interface__", None)
        if interface is not None and interface.get("data") is not None:
            m = _from_interface(name, source, interface, writable)
        else:
            m = _from_buffer(name, source, writable)
    if read_bytes_as is not None and m.kind in _BYTES:
        n, size = m.flat().count, _size(read_bytes_as)
        if n % size:
            raise ValueError(f"{name}: {n} bytes are not a multiple of {size}")
        m.kind, m.shape, m.strides = read_bytes_as, (n // size,), (size,)
    if m.kind not in types[0]:
        raise TypeError(f"{name}: elements of type {m.kind}; {types[1]} needed")
    return m


def host_list(name, source, list_code, types):
    """A contiguous array of one axis in host memory."""
    return memory(name, source, False, list_code, types).flat()


def _from_pointer(name, source):
    kind = _POINTER_KINDS.get(source.dtype) if isinstance(source.dtype, str) else None
    if kind is None:
        raise TypeError(f"{name}: Pointer.dtype {source.dtype!r} is none of {', '.join(_POINTER_KINDS)}")
    try:
        address, row_stride = operator.index(source.address or 0), operator.index(source.row_stride)
        shape = (source.shape,) if isinstance(source.shape, int) else tuple(map(operator.index, source.shape))
    except TypeError:
        raise TypeError(f"{name}: address, shape and row_stride of a Pointer are integers") from None
    if not 0 <= address < 2**64 or min(shape, default=0) < 0 or row_stride < 0:
        raise ValueError(f"{name}: address, shape or row_stride of a Pointer out of range")
    strides = None
    if row_stride:
        if len(shape) < 2:
            raise ValueError(f"{name}: Pointer.row_stride needs a shape of two or more axes")
        size = _size(kind)
        strides = tuple(s * row_stride * size for s in _packed(shape[:-1], 1)) + (size,)
    return Memory(name, address, kind, shape, strides, source)


def _from_interface(name, source, interface, writable):
    """__array_interface__ and __cuda_array_interface__ alike: a dict that describes memory, which is not touched."""
    typestr = interface["typestr"]
    if typestr[0] in _BIG_ENDIAN:
        raise TypeError(f"{name}: big-endian elements")
    if interface.get("mask") is not None:
        raise TypeError(f"{name}: masked arrays are not taken")
    address, read_only = interface["data"]
    if writable and read_only:
        raise ValueError(f"{name}: read-only")
    return Memory(name, address, typestr[1:], interface["shape"], interface.get("strides"), (source, interface))


def _is_masked(source):
    """Whether it is one of numpy's masked arrays, whose __array_interface__ does not tell of the mask."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(source, masked.MaskedArray)


def _from_list(name, source, list_code):
    shape = (len(source),)
    if source and isinstance(source[0], (list, tuple)):
        shape = (len(source), len(source[0]))
        if any(len(row) != shape[1] for row in source):
            raise ValueError(f"{name}: lists of different lengths")
        source = [value for row in source for value in row]
    try:
        if any(isinstance(value, bool) for value in source):
            raise TypeError
        values = array(list_code, source)
    except TypeError:
        raise TypeError(f"{name}: a list of integers is needed") from None
    except OverflowError:
        raise ValueError(f"{name}: an entry does not fit {_LIST_KINDS[list_code]}") from None
    return Memory(name, values.buffer_info()[0], _LIST_KINDS[list_code], shape, None, values)


class _PyBuffer(ctypes.Structure):
    """Py_buffer of the C API: the only way to the address of read-only memory."""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_void_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int], ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_PyBuffer)], None
_FULL_RO = 0x11C  # PyBUF_FULL_RO


def _from_buffer(name, source, writable):
    try:
        view = memoryview(source)  # while it lives, the memory can neither move nor go
    except TypeError:
        raise TypeError(f"{name}: {type(source).__name__} has neither the buffer protocol nor __array_interface__"
                        ) from None
    if writable and view.readonly:
        raise ValueError(f"{name}: read-only")
    code = view.format or "B"
    if code[0] in _BIG_ENDIAN:
        raise TypeError(f"{name}: big-endian elements")
    kind = f"{_FORMATS.get(code[-1], code)}{view.itemsize}" if len(code.lstrip("@=<")) == 1 else code
    raw = _PyBuffer()
    _get_buffer(view, raw, _FULL_RO)
    address = raw.buf
    _release_buffer(raw)
    return Memory(name, address, kind, view.shape, view.strides, view)


def _size(kind):
    return 2 if kind == "bf16" else int(kind[1:]) if kind[1:].isdecimal() else 1


def _product(numbers):
    product = 1
    for number in numbers:
        product *= number
    return product


def _packed(shape, size):
    """Strides of a packed array."""
    strides = []
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))
