"""What a run knows of a value, and what it learns about lengths on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from .values import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """What a probe knows of one value.

    data      its content, when that follows from shapes, constants and the probe's fillings and is small
    knowable  the content could be computed on demand (it is only too large to keep)
    constant  the content does not depend on any graph input
    filled    the content depends on what an input was filled with
    """

    shape: Shape | None = None
    dtype: ir.DataType | None = None
    data: Array | None = None
    knowable: bool = False
    constant: bool = False
    filled: bool = False


UNKNOWN: Final = Fact()


@dataclass(frozen=True)
class Conflict:
    """Two lengths that a node needs equal and that differ in this probe."""

    node: ir.Node
    first: int
    second: int


Conflicts = list[Conflict]
Rule = Callable[[ir.Node, Sequence[Fact], Conflicts], list[Shape | None]]
