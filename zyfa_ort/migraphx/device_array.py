"""Arrays in device memory: ours, and those of others that say where they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zyfa_ort.errors import InputError
from zyfa_ort.migraphx.tensor_type import TensorType


@dataclass(frozen=True)
class DeviceArray:
    """A contiguous array in a GPU's memory; whoever made it says what keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: object = field(default=None, repr=False, compare=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """As other libraries for GPUs ask for it. Types that NumPy lacks go under an integer type of the same width."""
        carried = self.dtype if self.dtype.kind != "V" else np.dtype(f"u{self.dtype.itemsize}")
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": carried.str,
            "data": (self.pointer, False),
            "strides": None,
        }


def device_array(name: str, given: Any, wanted: TensorType) -> DeviceArray:
    """What is given as input `name`: a DeviceArray, or anything with ``__cuda_array_interface__``.

    Raises:
        InputError: it is neither, not contiguous, or of another type or shape.
    """
    if isinstance(given, DeviceArray):
        found, type_fits = given, given.dtype == wanted.dtype
    elif hasattr(given, "__cuda_array_interface__"):
        found, type_fits = _of_interface(name, given, wanted)
    else:
        raise InputError(
            f"input {name}: expected a DeviceArray or an object with __cuda_array_interface__, got {type(given).__name__};"
            " run() takes arrays of the host"
        )
    if not type_fits or tuple(found.shape) != wanted.shape:
        raise InputError(
            f"input {name}: expected {wanted}, got {TensorType(found.dtype, tuple(found.shape))}"
        )
    return found


def _of_interface(name: str, given: Any, wanted: TensorType) -> tuple[DeviceArray, bool]:
    interface = given.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if interface.get("strides") not in (None, _contiguous(shape, dtype.itemsize)):
        raise InputError(f"input {name}: expected a contiguous array, got strides {interface['strides']}")
    carried = wanted.dtype.kind == "V" and dtype.kind in "iuV" and dtype.itemsize == wanted.dtype.itemsize
    kept = wanted.dtype if carried else dtype
    return DeviceArray(interface["data"][0], shape, kept, given), kept == wanted.dtype


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
