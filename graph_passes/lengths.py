"""The free lengths of a model and how they hang together.

Exporters give every input dimension a name of its own, and names do not tell what must be equal: torch's dynamo
exporter writes the keys' past length as s48 and the values' as s78, and the mask's length as s53 where s48 + s70 is
meant. So names are only a start: the graph is run on shapes with a different number for every name, and each place
where two numbers clash says which names belong together (`LengthModel.learn`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import onnx_ir as ir

Kind = Literal["batch", "tokens", "past", "image"]

BATCH_PROBE: Final = 3
IMAGE_PROBE: Final = 3  # patches along each side
EXTRA_POSITIONS: Final = (1, 0, 2)  # class and distillation tokens beside the patches
# Distinct, and no number is a sum of two others, so a clash can be read back.
LENGTH_PROBES: Final = (5, 7, 11, 13, 17, 19, 23, 29, 37, 41)
# More dimension names than this in one place (the past of each layer) are taken for one length from the start; the
# run on shapes would find out too, at one pass over the graph per name.
MERGE_FROM: Final = 3


@dataclass(frozen=True)
class Relation:
    """A length that is no free choice: the sum of other lengths and a constant."""

    terms: tuple[str, ...]
    constant: int = 0


@dataclass
class LengthModel:
    """Free lengths of a graph.

    dims       input dimension (input name, axis) -> length name
    kinds      length name -> kind
    relations  length name -> what it is made of
    symbols    symbol in the file -> length name, where they differ
    patches    kind "image": length name -> step of the convolution over it
    """

    dims: dict[tuple[str, int], str] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    patches: dict[str, int] = field(default_factory=dict)

    @property
    def free(self) -> list[str]:
        return [name for name in self.kinds if name not in self.relations]

    def resolve(self, free: Mapping[str, int]) -> dict[str, int]:
        """Numbers for all lengths from numbers for the free ones."""
        numbers = dict(free)

        def number(name: str) -> int:
            if name not in numbers:
                relation = self.relations[name]
                numbers[name] = relation.constant + sum(number(term) for term in relation.terms)
            return numbers[name]

        for name in self.kinds:
            number(name)
        for symbol, name in self.symbols.items():
            numbers.setdefault(symbol, number(name))
        return numbers

    def distinct(self) -> dict[str, int]:
        """A different number for every free length."""
        lengths = iter(LENGTH_PROBES)
        spare = 43
        numbers: dict[str, int] = {}
        for name in self.free:
            if self.kinds[name] == "batch":
                numbers[name] = BATCH_PROBE
                continue
            if self.kinds[name] == "image":
                numbers[name] = IMAGE_PROBE * self.patches[name]
                continue
            numbers[name] = next(lengths, spare)
            spare += 6
        return numbers

    def learn(self, first: int, second: int, free: Mapping[str, int]) -> bool:
        """Use the fact that two sizes met in a probe on `free` must be equal. True when something was learnt."""
        common = math.gcd(first, second)
        for one, other in ((first, second), (first // common, second // common)) if common else ():
            left, right = self._read(one, free), self._read(other, free)
            if self._unite(left, right) or self._unite(right, left):
                return True
        return False

    def with_images(self, positions: int) -> Iterator[LengthModel]:
        """Copies in which images are square and have as many patches as a table has positions (a few of which belong to
        tokens of their own)."""
        names = [name for name in self.free if self.kinds[name] == "image"]
        sides = dict.fromkeys(math.isqrt(max(positions - extra, 0)) for extra in EXTRA_POSITIONS)
        for side in sides if names else ():
            fixed = {name: Relation((), side * self.patches[name]) for name in names}
            yield replace(self, relations={**self.relations, **fixed})

    def with_totals(self) -> Iterator[LengthModel]:
        """Copies in which one tokens length is the sum of another and a past length."""
        tokens = [name for name in self.free if self.kinds[name] == "tokens"]
        past = [name for name in self.free if self.kinds[name] == "past"]
        for total in reversed(tokens):
            for new in tokens:
                for old in past if new != total else ():
                    yield replace(self, relations={**self.relations, total: Relation((old, new))})

    def _read(self, size: int, free: Mapping[str, int]) -> Relation:
        for name, number in free.items():
            if number == size:
                return Relation((name,))
        names = [name for name in free if self.kinds[name] != "batch"]
        for at, one in enumerate(names):
            for other in names[at + 1 :]:
                if free[one] + free[other] == size:
                    return Relation((one, other))
        return Relation((), size)

    def _unite(self, left: Relation, right: Relation) -> bool:
        only_left = [name for name in left.terms if name not in right.terms]
        rest = tuple(name for name in right.terms if name not in left.terms)
        if len(only_left) != 1 or (len(left.terms) > 1 and len(rest) != 1):
            return False
        name = only_left[0]
        if not rest and right.constant <= 1:  # a length of 1 broadcasts; 0 and 1 say nothing about equality
            return False
        self.relations[name] = Relation(rest, right.constant)
        return True


def length_model(graph: ir.Graph) -> LengthModel:
    """The lengths of the inputs of `graph`, by name and place; nothing learnt yet."""
    model = LengthModel()
    places: dict[tuple[str, int, int], list[str]] = {}
    for value in graph.inputs:
        if value.is_initializer() or value.shape is None:
            continue
        rank = len(value.shape)
        dense = "float" if value.dtype is not None and value.dtype.is_floating_point() else "int"
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, int):
                continue
            name = dim.value or f"{value.name}[{axis}]"
            if axis == 0 and rank > 1:
                name = "batch"
                model.symbols.setdefault(dim.value or name, name)
            model.dims[value.name or "", axis] = name
            patch = _patch(value, axis)
            if patch:
                model.patches[name] = patch
            model.kinds.setdefault(name, "image" if patch else _kind(name, dense, rank))
            place = places.setdefault((dense, rank, axis), [])
            if name not in place:
                place.append(name)
    for names in places.values():
        if len(names) > MERGE_FROM:
            for name in names[1:]:
                if names[0] not in _terms(model, name) and name not in model.relations:
                    model.relations[name] = Relation((names[0],))
    return model


def _patch(value: ir.Value, axis: int) -> int:
    """The step of the convolution that reads an image (B, C, H, W) along H or W; 0 where there is none."""
    readers = [use.node for use in value.uses() if use.node.op_type == "Conv"]
    if axis < 2 or value.shape is None or len(value.shape) != 4 or not readers:
        return 0
    strides = readers[0].attributes.get("strides")
    return 1 if strides is None else int(strides.as_ints()[axis - 2])


def _kind(name: str, dense: str, rank: int) -> Kind:
    if name == "batch":
        return "batch"
    return "past" if dense == "float" and rank > 3 else "tokens"


def _terms(model: LengthModel, name: str) -> set[str]:
    """Every length that `name` is made of, itself included: a relation must never run in a circle."""
    found = {name}
    for term in model.relations.get(name, Relation(())).terms:
        found |= _terms(model, term)
    return found
