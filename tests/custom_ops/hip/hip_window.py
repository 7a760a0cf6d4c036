"""The HIP runtime of custom_ops/hip through the test-only library, on the emulated device, in this process."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from custom_ops.op_session import Array
from kernels.emulator.hip_api import Hip
from kernels.select.cpp_select import LIBRARY, c_problem
from zyfa_ort.kernels.emulator import hip_library_path
from zyfa_ort.kernels.select import BUFFERS, Problem

import zyfa_ort
from zyfa_ort import env

TEXT = 4096
CAPTURE_GLOBAL = 0


class WindowError(Exception):
    """What the library threw."""


@functools.cache
def window() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(zyfa_ort.library_path()).with_name(LIBRARY)))
    before = os.environ.get(env.HIP_LIBRARY.name)
    os.environ[env.HIP_LIBRARY.name] = hip_library_path()
    try:
        _checked(library.zyfa_device, 0)  # opens HIP
    finally:
        if before is None:
            del os.environ[env.HIP_LIBRARY.name]
        else:
            os.environ[env.HIP_LIBRARY.name] = before
    return library


def _checked(function: Any, *arguments: Any) -> str:
    text = ctypes.create_string_buffer(TEXT)
    code = function(*arguments, text, ctypes.c_int64(TEXT))
    if code < 0:
        raise WindowError(text.value.decode())
    return text.value.decode()


def device(ordinal: int) -> str:
    return _checked(window().zyfa_device, ordinal)


def code_object_bytes(name: str) -> int:
    text = ctypes.create_string_buffer(TEXT)
    function = window().zyfa_code_object
    function.restype = ctypes.c_int64
    length = int(function(name.encode(), text, ctypes.c_int64(TEXT)))
    if length < 0:
        raise WindowError(text.value.decode())
    return length


def free_bytes(hip: Hip) -> int:
    size, total = ctypes.c_size_t(), ctypes.c_size_t()
    hip.MemGetInfo(ctypes.byref(size), ctypes.byref(total))
    return size.value


class Pool:
    """Of device 0."""

    def allocate(self, size: int, stream: int | None = None) -> int:
        pointer = ctypes.c_void_p()
        _checked(
            window().zyfa_pool_allocate,
            ctypes.c_uint64(size),
            ctypes.c_int(stream is not None),
            ctypes.c_void_p(stream),
            ctypes.byref(pointer),
        )
        return pointer.value or 0

    def release(self, pointer: int) -> None:
        window().zyfa_pool_release(ctypes.c_void_p(pointer))

    def touch(self, stream: int) -> None:
        window().zyfa_pool_touch(ctypes.c_void_p(stream))

    def finished(self, stream: int) -> None:
        window().zyfa_pool_finished(ctypes.c_void_p(stream))

    def trim(self) -> None:
        _checked(window().zyfa_pool_trim)


class Tensors:
    """Copies of a problem's tensors in device memory."""

    def __init__(self, hip: Hip, tensors: Mapping[str, Array]) -> None:
        self.hip = hip
        self.arrays = dict(tensors)
        self.places = {name: hip.upload(array) for name, array in self.arrays.items() if array.size}

    def __getitem__(self, name: str) -> Array:
        return self.hip.download(self.places[name], self.arrays[name])

    def run(self, problem: Problem, stream: int) -> None:
        pointers = (ctypes.c_void_p * len(BUFFERS))(*(self.places.get(name) for name in BUFFERS))
        _checked(window().zyfa_run, ctypes.byref(c_problem(problem)), pointers, ctypes.c_void_p(stream))

    def free(self) -> None:
        for place in self.places.values():
            self.hip.Free(place)
