"""What a probe is: a question, a launch, how its words are read, and what each answer means for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]  # (words, 64): word j of lane l at [j, l]
Array = NDArray[Any]

# The kernels of the package by what they lean on: a row's `users` and `breaks` are these names.
FAMILIES = ("fp8_prefill", "fp8_prefill_truncate", "bf16_prefill", "decode", "quantize")
FP8_PREFILL = FAMILIES[:2]
MAX_ANSWER = 200


def family_of(code_object: str) -> str | None:
    """The family of a code object, None for what is no kernel of the product (probes, self-check)."""
    if code_object.startswith("fp8_prefill"):
        return FP8_PREFILL[code_object.endswith("_truncate")]
    return next((one for one in FAMILIES if code_object.startswith(one)), None)


@dataclass(frozen=True)
class Meaning:
    """What an answer means for us, and the families whose results it would make wrong."""

    text: str
    breaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bound:
    """Numbers that are expected, in a unit."""

    low: float
    high: float
    unit: str

    def __str__(self) -> str:
        if self.low == -np.inf:
            return f"<= {self.high:g} {self.unit}"
        if self.high == np.inf:
            return f">= {self.low:g} {self.unit}"
        return f"{self.low:g} to {self.high:g} {self.unit}"

    def holds(self, answer: str) -> bool:
        number, _, unit = answer.partition(" ")
        try:
            return unit == self.unit and self.low <= float(number) <= self.high
        except ValueError:
            return False


@dataclass(frozen=True)
class Probe:
    """One question to the device. `read` gets input and output words and names the answer."""

    name: str
    question: str
    instruction: str  # mnemonic, or the beginning of several
    users: tuple[str, ...]  # families whose code has the instruction
    kernel: str
    inputs: Callable[[], Words]
    outputs: int  # words per lane
    read: Callable[[Words, Words], str]
    answers: Mapping[str, Meaning]  # the expected one first
    otherwise: Meaning
    bound: Bound | None = None
    waves: int = 1
    times: bool = False  # an emulated device cannot answer

    @property
    def expected(self) -> str:
        return str(self.bound) if self.bound else next(iter(self.answers))

    def meaning(self, answer: str) -> Meaning:
        """What the answer means; answers that nobody thought of have a meaning, too."""
        if self.bound is not None and self.bound.holds(answer):
            return next(iter(self.answers.values()))
        return self.answers.get(answer, self.otherwise)

    def is_expected(self, answer: str) -> bool:
        return self.bound.holds(answer) if self.bound else answer == self.expected


def one_of(found: Array, candidates: Mapping[str, Array]) -> str:
    """The name of the candidate that equals what was found (NaN equals NaN), else the first difference."""
    for name, wanted in candidates.items():
        if np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f"):
            return name
    name, wanted = next(iter(candidates.items()))
    same = found == wanted
    if found.dtype.kind == "f":
        same |= np.isnan(found) & np.isnan(wanted)
    at = np.unravel_index(np.flatnonzero(~same)[0], found.shape)
    place = ",".join(str(int(i)) for i in at)
    return f"other: {np.count_nonzero(~same)} of {found.size} differ from {name}, at {place} {found[at]} for {wanted[at]}"


def words_of(values: Array) -> Words:
    """Floats (words, 64) or (64,) as words."""
    return np.atleast_2d(np.ascontiguousarray(values, np.float32)).view(np.uint32)


def floats_of(words: Words) -> Array:
    return np.ascontiguousarray(words).view(np.float32)


def padded(values: list[float], filler: float = 0.0) -> Array:
    """One float per lane."""
    if len(values) > 64:
        raise ValueError(f"a wave has 64 lanes, got {len(values)} values")
    return np.array(values + [filler] * (64 - len(values)), np.float32)
