"""Our operators and the GPU's memory through the C functions of the operator library (custom_ops/direct/direct_abi.h)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_float, c_int32, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from zyfa_ort.errors import LibraryError, MigraphxError
from zyfa_ort.library import library_path
from zyfa_ort.migraphx.tensor_type import TensorType

CPU: Final = -1
_TEXT: Final = 4096
_TO_DEVICE, _TO_HOST, _WITHIN = 1, 2, 3
_ROUNDINGS: Final = ("unknown", "nearest", "truncate", "other")


class _Attribute(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("text", c_char_p),
        ("integer", c_int64),
        ("real", c_float),
        ("is_real", c_int32),
    )


class _Tensor(Structure):
    _fields_ = (("shape", POINTER(c_int64)), ("type", c_int32), ("rank", c_int32))


class _Request(Structure):
    _fields_ = (
        ("op", c_char_p),
        ("name", c_char_p),
        ("attributes", POINTER(_Attribute)),
        ("inputs", POINTER(_Tensor)),
        ("outputs", POINTER(_Tensor)),
        ("attribute_count", c_int64),
        ("input_count", c_int64),
        ("output_count", c_int64),
        ("device", c_int32),
        ("byte_rounding", c_int32),
    )


_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "node_create": (POINTER(_Request), POINTER(c_void_p)),
    "node_run": (c_void_p, POINTER(c_void_p), POINTER(c_void_p), c_void_p),
    "gpu_open": (c_int32,),
    "stream_create": (c_int32, POINTER(c_void_p)),
    "stream_synchronize": (c_void_p,),
    "memory_allocate": (c_int32, c_uint64, c_void_p, POINTER(c_void_p)),
    "memory_copy": (c_int32, c_void_p, c_void_p, c_uint64, c_int32, c_void_p),
}
_PLAIN: Final[dict[str, tuple[Any, Any]]] = {
    "node_destroy": ((c_void_p,), None),
    "stream_handle": ((c_void_p,), c_void_p),
    "stream_destroy": ((c_void_p,), None),
    "memory_release": ((c_int32, c_void_p), None),
}


@functools.cache
def _library() -> ctypes.CDLL:
    path = library_path()
    try:
        loaded = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            function = getattr(loaded, f"zyfa_{name}")
            function.argtypes, function.restype = (*arguments, c_char_p, c_int64), ctypes.c_int
        for name, (arguments, result) in _PLAIN.items():
            function = getattr(loaded, f"zyfa_{name}")
            function.argtypes, function.restype = arguments, result
    except (OSError, AttributeError) as error:
        raise LibraryError(f"{path}: cannot be used: {error}; reinstall with 'pip install .'") from error
    return loaded


def _call(name: str, *arguments: Any) -> str:
    """The text that the function wrote. Raises MigraphxError with it when the function failed."""
    text = ctypes.create_string_buffer(_TEXT)
    if getattr(_library(), f"zyfa_{name}")(*arguments, text, _TEXT) != 0:
        raise MigraphxError(text.value.decode(errors="replace"))
    return text.value.decode(errors="replace")


class Node:
    """One of our nodes with fixed shapes. Raises MigraphxError for what the operator or the GPU's kernels refuse."""

    def __init__(
        self,
        op: str,
        name: str,
        attributes: Mapping[str, int | float | str],
        inputs: Sequence[TensorType | None],
        outputs: Sequence[TensorType | None],
        device: int = CPU,
        byte_rounding: str = "unknown",
    ) -> None:
        self._handle = c_void_p()
        self._counts = len(inputs), len(outputs)
        written = (_Attribute * len(attributes))(*(_attribute(*item) for item in attributes.items()))
        tensors = [(_Tensor * len(some))(*(_tensor(one) for one in some)) for some in (inputs, outputs)]
        request = _Request(
            op.encode(), name.encode(), written, *tensors, len(written), *self._counts, device, _ROUNDINGS.index(byte_rounding)
        )  # fmt: skip
        _call("node_create", byref(request), byref(self._handle))

    def run(self, inputs: Sequence[int | None], outputs: Sequence[int | None], stream: int = 0) -> None:
        """On addresses in the operator's order; on a GPU nothing waits."""
        arrays = [
            (c_void_p * count)(*given) for count, given in zip(self._counts, (inputs, outputs), strict=True)
        ]
        _call("node_run", self._handle, *arrays, stream)

    def __del__(self) -> None:
        if self._handle:
            _library().zyfa_node_destroy(self._handle)


def _attribute(name: str, value: int | float | str) -> _Attribute:
    made = _Attribute(name.encode())
    if isinstance(value, str):
        made.text = value.encode()
    elif isinstance(value, float):
        made.real, made.is_real = value, 1
    else:
        made.integer = value
    return made


def _tensor(given: TensorType | None) -> _Tensor:
    if given is None:
        return _Tensor()
    lengths = (c_int64 * len(given.shape))(*given.shape)
    return _Tensor(lengths, int(ir.DataType.from_numpy(given.dtype)), len(given.shape))


@dataclass(frozen=True)
class Gpu:
    """A GPU as HIP has it. `library` is HIP's name or path."""

    number: int
    name: str
    architecture: str
    emulated: bool
    library: str

    @classmethod
    def open(cls, number: int) -> Gpu:
        """Raises MigraphxError: no HIP, or no such GPU."""
        name, architecture, emulated, library = _call("gpu_open", number).split("|", 3)
        return cls(number, name, architecture, emulated == "1", library)


class Stream:
    """A stream of ours, apart from the null stream; destroyed with this object, which waits for its work."""

    def __init__(self, gpu: Gpu) -> None:
        self._owned = c_void_p()
        _call("stream_create", gpu.number, byref(self._owned))
        self.handle: int = _library().zyfa_stream_handle(self._owned)

    def synchronize(self) -> None:
        """Raises MigraphxError: work on it failed, or a launch found what it cannot do."""
        _call("stream_synchronize", self._owned)

    def __del__(self) -> None:
        if self._owned:
            _library().zyfa_stream_destroy(self._owned)


class Buffer:
    """Device memory for work on one stream; given back with this object."""

    def __init__(self, gpu: Gpu, size: int, stream: int) -> None:
        self._pointer = c_void_p()
        self._gpu, self._stream, self.size = gpu, stream, size
        _call("memory_allocate", gpu.number, max(size, 1), stream, byref(self._pointer))
        self.address = self._pointer.value or 0

    def upload(self, array: NDArray[Any]) -> None:
        """`array` is contiguous, and stays until the stream's work is done."""
        self._copy(self.address, array.ctypes.data, array.nbytes, _TO_DEVICE)

    def download(self, into: NDArray[Any]) -> None:
        self._copy(into.ctypes.data, self.address, into.nbytes, _TO_HOST)

    def copy_from(self, address: int) -> None:
        self._copy(self.address, address, self.size, _WITHIN)

    def _copy(self, to: int, source: int, size: int, kind: int) -> None:
        if size:
            _call("memory_copy", self._gpu.number, to, source, size, kind, self._stream)

    def __del__(self) -> None:
        if self._pointer:
            _library().zyfa_memory_release(self._gpu.number, self._pointer)


def empty(kind: TensorType) -> NDArray[Any]:
    return np.empty(kind.shape, kind.dtype)
