"""One HIP device from Python: memory, code objects, launches. Real or emulated, through the same entry points.

Nothing of ROCm is needed to import this. Every status is looked at; messages carry HIP's own error string.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zyfa_ort import env
from zyfa_ort.errors import DeviceError, HipError

LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6")
EMULATED_SYMBOL = "zyfa_emulated_last_report"
# hipDeviceProp_tR0600, the layout of ROCm 6 and 7: 1,472 bytes; name first, gcnArchName at 1,160, 256 bytes each.
_PROPERTIES, _NAME, _ARCHITECTURE, _TEXT = 1472, 0, 1160, 256
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_POINTER, _SIZE, _END = 1, 2, 3  # HIP_LAUNCH_PARAM_

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "hipInit": (c_uint,),
    "hipGetDeviceCount": (c_void_p,),
    "hipSetDevice": (c_int,),
    "hipDriverGetVersion": (c_void_p,),
    "hipGetDevicePropertiesR0600": (c_void_p, c_int),
    "hipMalloc": (c_void_p, c_size_t),
    "hipFree": (c_void_p,),
    "hipMemcpy": (c_void_p, c_void_p, c_size_t, c_int),
    "hipDeviceSynchronize": (),
    "hipModuleLoadData": (c_void_p, c_void_p),
    "hipModuleUnload": (c_void_p,),
    "hipModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "hipModuleLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
}


def candidates() -> tuple[str, ...]:
    """The HIP libraries that would be tried, in order."""
    chosen = env.HIP_LIBRARY.get()
    return (chosen,) if chosen is not None else LIBRARIES


class Library:
    """HIP's entry points. Raises DeviceError: no library, or one too old."""

    def __init__(self) -> None:
        self.path, self._library = _opened()
        self.emulated = hasattr(self._library, EMULATED_SYMBOL)
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._library, name, None)
            if function is None:
                raise DeviceError(f"{self.path}: has no {name}; expected the HIP library of ROCm 6 or 7")
            function.argtypes, function.restype = arguments, c_int
        for name in ("hipGetErrorName", "hipGetErrorString"):
            function = getattr(self._library, name)
            function.argtypes, function.restype = (c_int,), c_char_p

    def call(self, name: str, *arguments: Any, what: str = "") -> None:
        """Raises HipError when the status is not hipSuccess."""
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            error, text = (
                getattr(self._library, f"hipGetError{part}")(code).decode(errors="replace")
                for part in ("Name", "String")
            )
            said = f"{error}, {text}" if text != error else error
            raise HipError(f"{name}{f' ({what})' if what else ''}: {said}{self._report()}")

    def _report(self) -> str:
        """What the emulated device has to say, first line."""
        if not self.emulated:
            return ""
        function = getattr(self._library, EMULATED_SYMBOL)
        function.argtypes, function.restype = (c_char_p, c_size_t), c_size_t
        text = ctypes.create_string_buffer(function(None, 0) + 1)
        function(text, len(text))
        lines = text.value.decode(errors="replace").splitlines()
        return f": {' '.join(lines[:2])[:400]}" if lines else ""


def _opened() -> tuple[str, ctypes.CDLL]:
    chosen = env.HIP_LIBRARY.get()
    if chosen is not None and not Path(chosen).is_file():
        raise DeviceError(
            f"{env.HIP_LIBRARY.name}: expected the path of a HIP library, found no file at {chosen}"
        )
    reasons = []
    for name in candidates():
        try:
            return name, ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
    raise DeviceError(
        f"HIP: expected one of {', '.join(candidates())}, none can be loaded ({reasons[-1]}); install ROCm, or point"
        f" {env.HIP_LIBRARY.name} at the emulated device: zyfa_ort.kernels.emulator.hip_library_path()"
    )


@dataclass
class Device:
    """A device in use. Made by `device()`, which frees what was allocated and loaded."""

    library: Library
    name: str
    architecture: str  # "gfx950", without the features behind it
    driver: int  # HIP's driver version: major * 10^7 + minor * 10^5 + patch
    _memory: list[int] = field(default_factory=list)
    _modules: list[int] = field(default_factory=list)

    @property
    def emulated(self) -> bool:
        return self.library.emulated

    def upload(self, array: NDArray[Any]) -> int:
        """Device address of a copy."""
        data = np.ascontiguousarray(array)
        pointer = c_void_p()
        self.library.call("hipMalloc", byref(pointer), max(data.nbytes, 1), what=f"{data.nbytes} bytes")
        self._memory.append(pointer.value or 0)
        if data.nbytes:
            self.library.call("hipMemcpy", pointer, data.ctypes.data, data.nbytes, _HOST_TO_DEVICE)
        return pointer.value or 0

    def download(self, address: int, like: NDArray[Any]) -> NDArray[Any]:
        """A new array of the shape and type of `like` with what the device has there."""
        made = np.empty_like(like, order="C")
        if made.nbytes:
            self.library.call("hipMemcpy", made.ctypes.data, address, made.nbytes, _DEVICE_TO_HOST)
        return made

    def free(self, address: int) -> None:
        self.library.call("hipFree", address)
        self._memory.remove(address)

    def load(self, code_object: bytes) -> int:
        """Handle of a loaded code object."""
        module = c_void_p()
        self.library.call("hipModuleLoadData", byref(module), code_object)
        self._modules.append(module.value or 0)
        return module.value or 0

    def function(self, module: int, kernel: str) -> int:
        function = c_void_p()
        self.library.call("hipModuleGetFunction", byref(function), module, kernel.encode(), what=kernel)
        return function.value or 0

    def launch(
        self, function: int, grid: Sequence[int], block: Sequence[int], arguments: bytes, dynamic_lds: int = 0
    ) -> None:
        """Launches on the null stream; `arguments` are packed as the kernel's metadata says."""
        packed = ctypes.create_string_buffer(arguments, max(len(arguments), 1))
        size = c_size_t(len(arguments))
        extra = (c_void_p * 5)(_POINTER, ctypes.addressof(packed), _SIZE, ctypes.addressof(size), _END)
        x, y, z = (*grid, 1, 1)[:3]
        i, j, k = (*block, 1, 1)[:3]
        self.library.call("hipModuleLaunchKernel", function, x, y, z, i, j, k, dynamic_lds, None, None, extra)

    def synchronize(self, what: str = "") -> None:
        """Waits for all work; a kernel that failed is an error here."""
        self.library.call("hipDeviceSynchronize", what=what)

    def _release(self) -> None:
        """The first failure is raised, everything is tried."""
        failures = []
        for name, handles in (("hipFree", self._memory), ("hipModuleUnload", self._modules)):
            for handle in handles:
                try:
                    self.library.call(name, handle)
                except HipError as error:
                    failures.append(error)
            handles.clear()
        if failures:
            raise failures[0]


@contextmanager
def device(ordinal: int = 0) -> Iterator[Device]:
    """The device with this number, for as long as the block lasts.

    Raises:
        DeviceError: no HIP library, no device. HipError: a call failed.
    """
    library = Library()
    library.call("hipInit", 0)
    count = c_int()
    library.call("hipGetDeviceCount", byref(count))
    if not 0 <= ordinal < count.value:
        raise DeviceError(f"HIP device {ordinal}: {library.path} sees {count.value} devices")
    library.call("hipSetDevice", ordinal)
    driver = c_int()
    library.call("hipDriverGetVersion", byref(driver))
    properties = ctypes.create_string_buffer(4 * _PROPERTIES)  # later layouts may be longer
    library.call("hipGetDevicePropertiesR0600", properties, ordinal)
    name, full = (_text(properties.raw[at : at + _TEXT]) for at in (_NAME, _ARCHITECTURE))
    made = Device(library, name, full.split(":")[0], driver.value)
    try:
        yield made
    except BaseException:
        _quietly(made)
        raise
    made._release()


def _quietly(made: Device) -> None:
    """Behind a failure, whose error is the one to show: a device that lost its context refuses to free, too."""
    try:
        made._release()
    except HipError:
        return


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode(errors="replace")
