"""Strided views against NumPy: whatever chain of operations, a view names the elements that the arrays hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from zyfa_ort.graph_passes.views import Atom, View, dense, merged, size

Indices = NDArray[np.int64]
EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True)
LENGTHS = st.sampled_from([1, 2, 2, 3, 4, 6])
ATOMS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), max_size=4)


def steps(atoms: Sequence[Atom]) -> Indices:
    """The offsets that one dimension makes, in order."""
    return reduce(
        lambda so_far, atom: np.add.outer(so_far, np.arange(atom[0]) * atom[1]).reshape(-1),
        atoms,
        np.zeros(1, np.int64),
    )


def offsets(view: View) -> Indices:
    """The element of the base that each element of a view is."""
    return reduce(lambda so_far, atoms: np.add.outer(so_far, steps(atoms)), view.dims, np.zeros((), np.int64))


def base(shape: Sequence[int]) -> Indices:
    return np.arange(math.prod(shape)).reshape(shape)


def is_sum_over_axes(array: Indices) -> bool:
    """Whether each axis steps by itself, whatever the others' indices are: what views can say."""
    total = np.full(array.shape, array.flat[0])
    for axis in range(array.ndim):
        line = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)[:, 0] - array.flat[0]
        total += line.reshape([-1 if at == axis else 1 for at in range(array.ndim)])
    return bool((total == array).all())


@st.composite
def factored(draw: st.DrawFn, number: int) -> tuple[int, ...]:
    """A shape of `number` elements."""
    shape: list[int] = []
    while number > 1:
        length = draw(st.sampled_from([one for one in range(2, number + 1) if number % one == 0]))
        shape.append(length)
        number //= length
    for at in draw(st.lists(st.integers(0, len(shape)), max_size=2)):
        shape.insert(at, 1)
    return tuple(shape)


def operation(data: st.DataObject, view: View, array: Indices) -> tuple[View | None, Indices]:
    """One random operation on both."""
    rank = array.ndim
    kind = data.draw(st.sampled_from(["transpose", "reshape", "expand", "tile"]))
    if kind == "transpose":
        perm = data.draw(st.permutations(range(rank)))
        return view.transpose(perm), array.transpose(perm)
    if kind == "reshape":
        shape = data.draw(factored(array.size))
        return view.reshape(shape), array.reshape(shape)
    if kind == "expand":
        more = data.draw(st.lists(st.integers(1, 3), max_size=1))
        own = [data.draw(st.integers(1, 3)) if length == 1 else length for length in array.shape]
        return view.expand((*more, *own)), np.broadcast_to(array, (*more, *own))
    repeats = [data.draw(st.integers(1, 2)) for _ in array.shape]
    return view.tile(repeats), np.tile(array, repeats)


@EXAMPLES
@given(st.lists(LENGTHS, max_size=4), st.data())
def test_chains_are_what_numpy_does(shape: list[int], data: st.DataObject) -> None:
    """A view is given up exactly where no sum of steps per axis exists."""
    view, array = dense(shape), base(shape)
    for _ in range(data.draw(st.integers(1, 6))):
        found, array = operation(data, view, array)
        if array.size > 5000:
            return
        if found is None:
            assert not is_sum_over_axes(array)
            return
        view = found
        assert view.shape == array.shape
        np.testing.assert_array_equal(offsets(view), array)


@EXAMPLES
@given(ATOMS, ATOMS)
def test_merged_atoms_are_equal_exactly_when_the_steps_are(one: list[Atom], other: list[Atom]) -> None:
    for atoms in (one, other):
        np.testing.assert_array_equal(steps(merged(atoms)), steps(atoms))
        assert merged(merged(atoms)) == merged(atoms) and size(merged(atoms)) == size(atoms)
    assert (merged(one) == merged(other)) == np.array_equal(steps(one), steps(other))


@EXAMPLES
@given(ATOMS, st.data())
def test_an_atom_in_two_parts_merges_again(atoms: list[Atom], data: st.DataObject) -> None:
    """Splitting (a*b, s) into (a, b*s), (b, s) changes nothing."""
    parts: list[Atom] = []
    for length, stride in atoms:
        inner = data.draw(st.sampled_from([one for one in range(1, length + 1) if length % one == 0]))
        parts += [(length // inner, inner * stride), (inner, stride)]
    assert merged(parts) == merged(atoms)


def test_repeated_in_a_block_or_in_turn() -> None:
    """What tells repeat_interleave (0, 0, 1, 1), which is GQA, from tile (0, 1, 0, 1), which is not."""
    heads = dense((2, 5))
    block = heads.reshape((2, 1, 5)).expand((2, 3, 5)).reshape((6, 5))
    in_turn = heads.tile((3, 1))
    assert block is not None and in_turn is not None
    assert offsets(block)[:, 0].tolist() == [0, 0, 0, 5, 5, 5]
    assert offsets(in_turn)[:, 0].tolist() == [0, 5, 0, 5, 0, 5]
    assert [merged(atoms) for atoms in block.dims] != [merged(atoms) for atoms in in_turn.dims]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_nothing_at_all(shape: tuple[int, ...]) -> None:
    view = dense(shape)
    assert view.shape == shape and offsets(view).shape == shape
    assert view.transpose(range(len(shape))[::-1]).shape == shape[::-1]
    assert view.reshape(shape) is None
    assert view.expand((2, *shape)).shape == (2, *shape)


def test_operations_that_do_not_fit() -> None:
    view = dense((2, 3))
    assert view.reshape((7,)) is None
    assert view.expand((3,)) is None
    assert view.expand((4, 3)) is None
    assert view.tile((2,)) is None
    assert dense(()).reshape((1, 1)) == View(((), ()))
