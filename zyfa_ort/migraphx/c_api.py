"""MIGraphX's public C API through ctypes: what is used of it, declared here, so that no header is needed.

Nothing is loaded before the first use. MIGraphX writes its reasons to the standard error stream and returns a number; the
reasons are caught there and become the text of the exception.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_bool, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from zyfa_ort import env
from zyfa_ort.errors import MigraphxError

LIBRARY: Final = "libmigraphx_c.so.3"
QUEUE: Final = b"ihipStream_t"  # how run_async wants a HIP stream called

_SIZES, _STRINGS = ctypes.POINTER(c_size_t), ctypes.POINTER(c_char_p)
_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "shape_create": (c_void_p, c_int, _SIZES, c_size_t),
    "shape_destroy": (c_void_p,),
    "shape_lengths": (c_void_p, c_void_p, c_void_p),
    "shape_strides": (c_void_p, c_void_p, c_void_p),
    "shape_type": (c_void_p, c_void_p),
    "shape_bytes": (c_void_p, c_void_p),
    "argument_create": (c_void_p, c_void_p, c_void_p),
    "argument_destroy": (c_void_p,),
    "argument_shape": (c_void_p, c_void_p),
    "argument_buffer": (c_void_p, c_void_p),
    "arguments_size": (c_void_p, c_void_p),
    "arguments_get": (c_void_p, c_void_p, c_size_t),
    "arguments_destroy": (c_void_p,),
    "target_create": (c_void_p, c_char_p),
    "target_destroy": (c_void_p,),
    "shapes_size": (c_void_p, c_void_p),
    "shapes_get": (c_void_p, c_void_p, c_size_t),
    "shapes_destroy": (c_void_p,),
    "program_parameter_shapes_size": (c_void_p, c_void_p),
    "program_parameter_shapes_names": (_STRINGS, c_void_p),
    "program_parameter_shapes_get": (c_void_p, c_void_p, c_char_p),
    "program_parameter_shapes_destroy": (c_void_p,),
    "program_parameters_create": (c_void_p,),
    "program_parameters_add": (c_void_p, c_char_p, c_void_p),
    "program_parameters_destroy": (c_void_p,),
    "program_get_parameter_shapes": (c_void_p, c_void_p),
    "program_get_output_shapes": (c_void_p, c_void_p),
    "program_compile": (c_void_p, c_void_p, c_void_p),
    "program_run": (c_void_p, c_void_p, c_void_p),
    "program_run_async": (c_void_p, c_void_p, c_void_p, c_void_p, c_char_p),
    "program_destroy": (c_void_p,),
    "compile_options_create": (c_void_p,),
    "compile_options_set_offload_copy": (c_void_p, c_bool),
    "compile_options_set_fast_math": (c_void_p, c_bool),
    "compile_options_set_exhaustive_tune_flag": (c_void_p, c_bool),
    "compile_options_destroy": (c_void_p,),
    "onnx_options_create": (c_void_p,),
    "onnx_options_destroy": (c_void_p,),
    "parse_onnx_buffer": (c_void_p, c_char_p, c_size_t, c_void_p),
    "file_options_create": (c_void_p,),
    "file_options_destroy": (c_void_p,),
    "load": (c_void_p, c_char_p, c_void_p),
    "save": (c_void_p, c_char_p, c_void_p),
}
# In the order of migraphx_shape_datatype_t from bool on. What comes before bool differs between versions.
_TYPES: Final[tuple[Any, ...]] = (
    np.bool_, np.float16, np.float32, np.float64, np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64, np.uint32,
    np.uint64, None, ml_dtypes.float8_e4m3fn, None, ml_dtypes.bfloat16,
)  # fmt: skip
_FIRST_SIZES: Final = (1, 2, 4, 8)  # bytes of the first four
_redirecting = threading.Lock()


@dataclass(frozen=True)
class Shape:
    """Of a tensor in MIGraphX; strides are in elements."""

    dtype: np.dtype[Any]
    lengths: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        """Whether elements lie as in a C array. Strides of axes of length 1 say nothing."""
        step = 1
        for length, stride in zip(reversed(self.lengths), reversed(self.strides), strict=True):
            if length != 1 and stride != step:
                return False
            step *= length
        return True


@functools.cache
def library() -> ctypes.CDLL:
    """The C API. Raises MigraphxError: it cannot be loaded, or lacks a function."""
    chosen = env.MIGRAPHX_LIBRARY.get() or LIBRARY
    try:
        loaded = ctypes.CDLL(chosen)
    except OSError as error:
        raise MigraphxError(
            f"{chosen}: cannot be loaded: {error}; install MIGraphX 7, or set {env.MIGRAPHX_LIBRARY.name}"
        ) from error
    for name, arguments in _SIGNATURES.items():
        function = getattr(loaded, f"migraphx_{name}", None)
        if function is None:
            raise MigraphxError(f"{chosen}: has no migraphx_{name}; expected MIGraphX 7")
        function.argtypes, function.restype = arguments, c_int
    return loaded


def call(name: str, *arguments: Any, what: str = "") -> None:
    """Raises MigraphxError with MIGraphX's own words; `what` says what the call was for."""
    function = getattr(library(), f"migraphx_{name}")
    with _standard_error() as said:
        code = function(*arguments)
    if code != 0:
        reason = _reason(said, name) or f"status {code}"
        raise MigraphxError(f"migraphx_{name}{f' ({what})' if what else ''}: {reason}")


def quick(name: str, *arguments: Any, what: str = "") -> None:
    """The same for calls of every run: what they say goes to the standard error stream itself."""
    code = getattr(library(), f"migraphx_{name}")(*arguments)
    if code != 0:
        about = f" ({what})" if what else ""
        raise MigraphxError(f"migraphx_{name}{about}: status {code}; the reason is on standard error")


@contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Lines that C code writes to the standard error stream inside the block; they are there when it ends."""
    lines: list[str] = []
    with _redirecting, tempfile.TemporaryFile() as caught:
        kept = os.dup(2)
        watched = faulthandler.is_enabled()
        if not watched:
            faulthandler.enable(file=kept)  # Debian's MIGraphX has assertions: a crash must not be silent
        os.dup2(caught.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(kept, 2)
            if not watched:
                faulthandler.disable()
            os.close(kept)
            caught.seek(0)
            lines.extend(caught.read().decode(errors="replace").splitlines())


def _reason(lines: Sequence[str], name: str) -> str:
    """The last line that says an error, without the function's name and the place in MIGraphX's sources."""
    for line in reversed(lines):
        _, found, text = line.partition(f"migraphx_{name}: Error: ")
        if found:
            parts = text.split(": ")
            at_source = len(parts) > 2 and ".cpp:" in parts[0]
            return ": ".join(parts[2:]) if at_source else text
    return lines[-1] if lines else ""


class Owned:
    """A handle that is destroyed with this object; `create` names what makes it where that may fail with a reason."""

    def __init__(self, kind: str, *arguments: Any, create: str = "", what: str = "") -> None:
        self._destroy: Any = None
        self.handle = c_void_p()
        if create:
            call(create, byref(self.handle), *arguments, what=what)
        else:
            quick(f"{kind}_create", byref(self.handle), *arguments)
        self._destroy = getattr(library(), f"migraphx_{kind}_destroy")

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self.handle)


@functools.cache
def _first_type() -> int:
    """The number of bool: by the sizes of the types that follow it, since versions number them differently."""
    for first in (2, 1):
        sizes = []
        for number in range(first, first + len(_FIRST_SIZES)):
            size, shape = c_size_t(), described(number, (1,))
            quick("shape_bytes", byref(size), shape.handle)
            sizes.append(size.value)
        if tuple(sizes) == _FIRST_SIZES:
            return first
    raise MigraphxError(
        f"{LIBRARY}: numbers its element types in a way that is not known; expected MIGraphX 7"
    )


def described(number: int, lengths: Sequence[int]) -> Owned:
    """A shape of MIGraphX, with its elements in order."""
    return Owned("shape", number, (c_size_t * len(lengths))(*lengths), len(lengths))


@functools.cache
def _numbers() -> dict[np.dtype[Any], int]:
    first = _first_type()
    return {np.dtype(kind): first + at for at, kind in enumerate(_TYPES) if kind is not None}


def type_number(dtype: np.dtype[Any]) -> int:
    """MIGraphX's number of a type that it has."""
    return _numbers()[dtype]


def read_shape(handle: c_void_p) -> Shape:
    """Raises MigraphxError: a type that NumPy and ml_dtypes have not."""
    number = c_int()
    quick("shape_type", byref(number), handle)
    at = number.value - _first_type()
    kind = _TYPES[at] if 0 <= at < len(_TYPES) else None
    if kind is None:
        raise MigraphxError(
            f"element type {number.value} of MIGraphX: expected one that NumPy or ml_dtypes has"
        )
    return Shape(np.dtype(kind), _lengths("shape_lengths", handle), _lengths("shape_strides", handle))


def _lengths(name: str, handle: c_void_p) -> tuple[int, ...]:
    numbers, count = _SIZES(), c_size_t()
    quick(name, byref(numbers), byref(count), handle)
    return tuple(numbers[: count.value])
