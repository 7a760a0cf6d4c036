"""Exact index reasoning: a tensor as a strided view of another.

A `View` says, for each dimension of a tensor, which steps through the base tensor's flat storage its indices make. A
dimension is a list of atoms (length, stride), outermost first; stride 0 means that the element repeats. Transpose,
Reshape, Expand and Tile of a view are views again, so whether a chain of them is, say, "split the heads and repeat
each key head three times in a row" is decided by comparing atoms and not by recognising operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]
Atom = tuple[int, int]
Atoms = tuple[Atom, ...]


def merged(atoms: Sequence[Atom]) -> Atoms:
    """The shortest list that makes the same steps; two lists are equal as index maps when these are."""
    result: list[Atom] = []
    for length, stride in atoms:
        if length == 1:
            continue
        if result:
            outer, outer_stride = result[-1]
            if outer_stride == length * stride:  # holds for two repeats as well: 0 == length * 0
                result[-1] = (outer * length, stride)
                continue
        result.append((length, stride))
    return tuple(result)


def size(atoms: Sequence[Atom]) -> int:
    return math.prod(length for length, _ in atoms)


@dataclass(frozen=True)
class View:
    """dims: one atom list per dimension."""

    dims: tuple[Atoms, ...]

    @property
    def shape(self) -> Shape:
        return tuple(size(atoms) for atoms in self.dims)

    def transpose(self, perm: Sequence[int]) -> View:
        return View(tuple(self.dims[axis] for axis in perm))

    def reshape(self, shape: Sequence[int]) -> View | None:
        """The same elements in row-major order under another shape; None when no steps per dimension make that order."""
        if math.prod(shape) != math.prod(self.shape) or 0 in shape:
            return None
        # Merged, an atom that does not divide evenly is where two dimensions would depend on each other.
        pending = list(reversed(merged([atom for atoms in self.dims for atom in atoms])))
        dims: list[Atoms] = []
        for length in shape:
            taken: list[Atom] = []
            need = length
            while need > 1:
                have, stride = pending.pop()
                if need % have == 0:
                    taken.append((have, stride))
                    need //= have
                elif have % need == 0:
                    taken.append((need, have // need * stride))
                    pending.append((have // need, stride))
                    need = 1
                else:
                    return None
            dims.append(tuple(taken))
        return View(tuple(dims))

    def expand(self, shape: Sequence[int]) -> View | None:
        """NumPy broadcasting to `shape`."""
        if len(shape) < len(self.dims):
            return None
        dims: list[Atoms] = [()] * (len(shape) - len(self.dims)) + list(self.dims)
        for axis, (length, atoms) in enumerate(zip(shape, dims, strict=True)):
            have = size(atoms)
            if have == 1 and length != 1:
                dims[axis] = ((length, 0),)
            elif have != length:
                return None
        return View(tuple(dims))

    def tile(self, repeats: Sequence[int]) -> View | None:
        """Whole-tensor repetition along each axis: the repeat is the outer step (0, 1, 0, 1 and never 0, 0, 1, 1)."""
        if len(repeats) != len(self.dims):
            return None
        return View(
            tuple(
                atoms if times == 1 else ((times, 0), *atoms)
                for times, atoms in zip(repeats, self.dims, strict=True)
            )
        )


def dense(shape: Sequence[int]) -> View:
    """The view of a row-major tensor onto itself."""
    dims: list[Atoms] = []
    stride = math.prod(shape)
    for length in shape:
        stride = stride // length if length else 0
        dims.append(((length, stride),))
    return View(tuple(dims))
