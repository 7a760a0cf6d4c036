"""Element type and shape of a tensor, and how a file says them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

_NARROW = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn")}


@dataclass(frozen=True)
class TensorType:
    """NumPy's (or ml_dtypes') element type, and lengths."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name} {'x'.join(map(str, self.shape)) or 'scalar'}"

    def written(self) -> list[Any]:
        return [self.dtype.name, list(self.shape)]

    @classmethod
    def read(cls, written: list[Any]) -> TensorType:
        name, shape = written
        return cls(_NARROW.get(name) or np.dtype(name), tuple(int(length) for length in shape))
