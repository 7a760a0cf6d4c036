"""Python values to a kernel's packed arguments, checked against what the kernel's metadata says it takes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from zyfa_ort.kernels.emulator.code_object import Argument, Kernel
from zyfa_ort.kernels.errors import EmulationError

# An array is a buffer, None a null pointer; NumPy scalars, numbers and bytes are passed by value.
Value: TypeAlias = "np.ndarray[Any, Any] | np.generic | int | float | bytes | None"
AddressOf: TypeAlias = Callable[["np.ndarray[Any, Any]", str], int]

_POINTER = 8


def pack(kernel: Kernel, values: Sequence[Value], address_of: AddressOf) -> bytes:
    """The argument block of a launch. `address_of(array, name)` makes an array a device buffer.

    Raises EmulationError that names the argument, what it takes and what was given.
    """
    if not kernel.arguments and kernel.kernarg_bytes:
        return _pack_naturally(kernel, values, address_of)
    parameters = kernel.parameters
    if len(values) != len(parameters):
        names = ", ".join(p.name or f"#{i} ({p.size} bytes)" for i, p in enumerate(parameters)) or "none"
        raise EmulationError(
            f"kernel '{kernel.name}': expected {len(parameters)} arguments ({names}), got {len(values)}"
        )
    packed = bytearray(kernel.explicit_bytes())
    for index, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        label = parameter.label(index)
        made = _pointer(label, value, address_of) if parameter.is_buffer else _value(label, parameter, value)
        packed[parameter.offset : parameter.offset + parameter.size] = made
    return bytes(packed)


def check_block(kernel: Kernel, block: bytes) -> bytes:
    """Arguments that the caller has packed. Raises EmulationError when they are too short or too long."""
    least, most = kernel.explicit_bytes(), max(kernel.explicit_bytes(), kernel.kernarg_bytes)
    if not kernel.arguments:
        least = kernel.kernarg_bytes
    if not least <= len(block) <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        raise EmulationError(
            f"kernel '{kernel.name}': expected {expected} bytes of packed arguments, got {len(block)}"
        )
    return block


def checked_array(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """The array as bytes the device can borrow. Raises EmulationError: not contiguous, or of Python objects."""
    if array.dtype.hasobject:
        raise EmulationError(f"{name}: expected an array of numbers, got dtype {array.dtype}")
    if not array.flags.c_contiguous:
        raise EmulationError(
            f"{name}: expected a C-contiguous array, got shape {array.shape} with strides {array.strides}; "
            "use numpy.ascontiguousarray"
        )
    return array.reshape(-1).view(np.uint8)


def _pointer(label: str, value: Value, address_of: AddressOf) -> bytes:
    if value is None:
        return bytes(_POINTER)
    if isinstance(value, np.ndarray):
        return struct.pack("<Q", address_of(value, label))
    if isinstance(value, np.uint64):
        return value.tobytes()
    raise EmulationError(
        f"{label}: expected a buffer (an array, None, or a device address as numpy.uint64), got {_described(value)}"
    )


def _value(label: str, parameter: Argument, value: Value) -> bytes:
    size = parameter.size
    if isinstance(value, bytes | np.generic):
        made = value if isinstance(value, bytes) else value.tobytes()
        if len(made) != size:
            raise EmulationError(f"{label}: expected a value of {size} bytes, got {_described(value)}")
        return made
    if isinstance(value, bool | int):
        signed = value < 0
        try:
            return int(value).to_bytes(size, "little", signed=signed)
        except OverflowError:
            raise EmulationError(f"{label}: expected an integer of {size} bytes, got {value}") from None
    if isinstance(value, float) and size in (4, 8):
        return struct.pack("<f" if size == 4 else "<d", value)
    raise EmulationError(f"{label}: expected a value of {size} bytes, got {_described(value)}")


def _pack_naturally(kernel: Kernel, values: Sequence[Value], address_of: AddressOf) -> bytes:
    """For kernels whose metadata lists no arguments: each value at its natural alignment, integers and floats of 4 bytes."""
    packed = b""
    for index, value in enumerate(values):
        label = f"argument {index}"
        if value is None or isinstance(value, np.ndarray):
            made = _pointer(label, value, address_of)
        elif isinstance(value, bytes | np.generic):
            made = value if isinstance(value, bytes) else value.tobytes()
        else:
            made = _value(label, Argument(label, "by_value", 0, 4), value)
        packed += bytes(-len(packed) % min(max(len(made), 1), _POINTER)) + made
    if len(packed) > kernel.kernarg_bytes:
        raise EmulationError(
            f"kernel '{kernel.name}': takes {kernel.kernarg_bytes} bytes of arguments, got {len(packed)}"
        )
    return packed.ljust(kernel.kernarg_bytes, b"\0")


def _described(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}{list(value.shape)}"
    if isinstance(value, np.generic):
        return f"{value.dtype} ({value.dtype.itemsize} bytes)"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return f"{type(value).__name__} {value!r}"
