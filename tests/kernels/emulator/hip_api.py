"""The emulated HIP device driven as a plain HIP program would: ctypes over the shared library."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref, c_char_p, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from zyfa_ort.kernels.emulator import hip_library_path

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT = 1, 2, 3, 4
INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, INVALID_DIRECTION = 1, 2, 9, 21
NO_DEVICE, INVALID_DEVICE, INVALID_IMAGE, NO_BINARY, FILE_NOT_FOUND = 100, 101, 200, 209, 301
INVALID_HANDLE, ILLEGAL_STATE, NOT_FOUND, NOT_READY, OUT_OF_RESOURCES = 400, 401, 500, 600, 701
LAUNCH_FAILURE, INVALID_PITCH, MISSING_CONFIGURATION, INVALID_FUNCTION = 719, 12, 52, 98


class HipError(Exception):
    """A call that did not return hipSuccess."""

    def __init__(self, name: str, code: int):
        super().__init__(f"{name} returned {code}")
        self.code = code


def library() -> ctypes.CDLL:
    loaded = ctypes.CDLL(hip_library_path())
    for name in ("hipGetErrorName", "hipGetErrorString"):
        getattr(loaded, name).restype = c_char_p
    loaded.zyfa_emulated_last_report.restype = c_size_t
    loaded.zyfa_emulated_last_report.argtypes = [c_char_p, c_size_t]
    return loaded


class Hip:
    """Calls by name; a code other than success is raised. Pointers and handles are plain integers."""

    def __init__(self) -> None:
        self.library = library()

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(self.library, f"hip{name}")

        def call(*arguments: Any) -> None:
            code = function(*(_converted(a) for a in arguments))
            if code != 0:
                raise HipError(f"hip{name}", code)

        return call

    def code(self, name: str, *arguments: Any) -> int:
        """The status of a call, whatever it is."""
        return getattr(self.library, f"hip{name}")(*(_converted(a) for a in arguments))

    def made(self, name: str, *arguments: Any) -> int:
        """The pointer or handle that a call gives."""
        handle = c_void_p()
        getattr(self, name)(byref(handle), *arguments)
        return handle.value or 0

    def end_capture(self, stream: int) -> int:
        """The graph of a capture."""
        handle = c_void_p()
        self.StreamEndCapture(stream, byref(handle))
        return handle.value or 0

    def report(self) -> str:
        size = self.library.zyfa_emulated_last_report(None, 0)
        text = ctypes.create_string_buffer(size)
        self.library.zyfa_emulated_last_report(text, size)
        return text.value.decode()

    def upload(self, array: np.ndarray, stream: int = 0) -> int:
        pointer = self.made("Malloc", array.nbytes)
        self.MemcpyAsync(pointer, array, array.nbytes, HOST_TO_DEVICE, stream)
        return pointer

    def download(self, pointer: int, like: np.ndarray) -> np.ndarray:
        made = np.empty_like(like)
        self.Memcpy(made, pointer, made.nbytes, DEVICE_TO_HOST)
        return made

    def function(self, code_object: bytes, name: str = "kernel") -> int:
        module = self.made("ModuleLoadData", code_object)
        return self.made("ModuleGetFunction", module, name.encode())

    def launch(self, function: int, grid: int, block: int, arguments: list[Any], stream: int = 0) -> int:
        """The status of a launch with kernelParams; arguments are ctypes values or device pointers."""
        values = [c_void_p(a) if isinstance(a, int) else a for a in arguments]
        parameters = (c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        sizes = [c_uint(n) for n in (grid, 1, 1, block, 1, 1, 0)]
        return self.library.hipModuleLaunchKernel(
            c_void_p(function), *sizes, c_void_p(stream), parameters, None
        )


def _converted(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return c_void_p(argument.ctypes.data)
    # 64 bits: a callee that takes an int looks at the lower half.
    if isinstance(argument, int):
        return c_size_t(argument)
    return argument


def in_process(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with `hip = Hip()` in a process of its own."""
    start = """
import ctypes
import numpy as np
from ctypes import *
from kernels.emulator.hip_api import *
from kernels.emulator.hip_kernels import *
hip = Hip()
"""
    return subprocess.run(
        [sys.executable, "-P", "-c", start + program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
