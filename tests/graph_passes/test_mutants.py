"""Meaning over memory: attention graphs mutated at random are fused with the same numbers, or declined with a reason.

One mutant again: `pytest "tests/graph_passes/test_mutants.py::test_mutant[123]" -m ''`; all of them: `-m ''`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final

import pytest

from graph_passes.mutant_edits import EDITS, KEEPING
from graph_passes.mutant_runs import Verdict, check, reveals
from graph_passes.mutant_wraps import WRAPS
from graph_passes.mutants import BASES, HOSTILE, REWRITES, Mutant, of_names, of_number, tamed

QUICK: Final = 120
ALL: Final = 2000
SAFE: Final = (*REWRITES, *EDITS)
INSERTIONS: Final = (
    *("identity", "float to double and back", "reshape pair", "merge the first axes and back"),
    *("transpose pair", "unsqueeze and squeeze"),
)
# Harmless mutations after which a site may stay, with what the reason says.
MAY_DECLINE: Final[dict[str, str]] = {
    # A past of its own for values could be longer than that of keys.
    "dims without names": "the value tensor is not a",
    "dims of their own": "the value tensor is not a",
    # Between the Softmax and the two nodes of its NaN guard, of which only one then reads the probabilities.
    **dict.fromkeys(INSERTIONS, "the probabilities are read by"),
}
# The largest share of harmless mutants (no wrap, nothing wanted elsewhere) that may stay as they are.
DECLINED: Final = 0.05
# Changes of meaning that only a row without any key could show, which is not compared.
UNSEEN: Final = frozenset({"guard fills in 1", "additive mask of -9000", "all hidden from one head"})


def checked(mutant: Mutant) -> Verdict:
    try:
        return check(mutant)
    except Exception as error:
        error.add_note(f"recipe: {' | '.join(mutant.recipe)}")
        raise


@cache
def verdict(number: int) -> tuple[Mutant, Verdict]:
    mutant = of_number(number)
    return mutant, checked(mutant)


def _slow_from(first: int, total: int) -> list[object]:
    return [*range(first), *(pytest.param(at, marks=pytest.mark.slow) for at in range(first, total))]


@pytest.mark.parametrize("number", _slow_from(QUICK, ALL))
def test_mutant(number: int) -> None:
    mutant, found = verdict(number)
    assert found.fused or found.reasons, f"no site was found: {mutant.recipe}"


def _singles(names: tuple[str, ...]) -> list[object]:
    """Each mutation on one base in the quick run, on every base in the slow one."""
    bases = list(BASES)
    return [
        pytest.param(
            base, name, marks=() if at % len(bases) == place else pytest.mark.slow, id=f"{base}-{name}"
        )
        for at, name in enumerate(names)
        for place, base in enumerate(bases)
    ]


@pytest.mark.parametrize(("base", "name"), _singles(SAFE))
def test_harmless_mutation(base: str, name: str) -> None:
    """Alone it stops nothing."""
    found = checked(of_names([base, name]))
    allowed = MAY_DECLINE.get(name, "nothing")
    assert all(allowed in reason for reason in found.reasons), (base, name, found.reasons)


@pytest.mark.parametrize(("base", "name"), _singles(tuple(HOSTILE)))
def test_hostile_mutation(base: str, name: str) -> None:
    checked(of_names([base, name]))


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in UNSEEN])
def test_inputs_reveal_a_hostile_mutation(name: str) -> None:
    """What the mutation changes shows in the numbers: a site that is fused as if it were not there would fail."""
    mutant = of_names(["eager causal", name])
    assert reveals(mutant, tamed(mutant))


@pytest.mark.parametrize("base", BASES)
def test_bases_fuse(base: str) -> None:
    assert not checked(of_names([base])).reasons


# Combinations that were wrong, invalid or a crash once, and whose parts alone are not.
FOUND: Final = (
    ("past", "into a loop"),
    ("softcap, window, past", "into branches"),
    ("packed", "exactly 50 keys", "dims as numbers"),
    ("two sites", "maximum of rows subtracted", "a second site with a mask of its own"),
    ("past, grouped, padded", "positions that wrap"),
    ("bias", "scale grows beyond 64"),
    ("cross, padded", "exists: of all rows"),
    ("sdpa past window", "longer than 64 queries"),
    ("torchscript", "a table odd near its end"),
)


@pytest.mark.parametrize("recipe", FOUND, ids=" + ".join)
@pytest.mark.parametrize("seed", range(3))
def test_found_once(recipe: tuple[str, ...], seed: int) -> None:
    checked(of_names(recipe, seed))


@pytest.mark.parametrize("name", KEEPING)
def test_values_wanted_elsewhere_keep_their_site(name: str) -> None:
    found = checked(of_names(["eager causal", name]))
    assert (found.fused, len(found.reasons)) == (0, 1)


@pytest.mark.parametrize("name", WRAPS)
@pytest.mark.parametrize("base", ["eager causal", "sdpa padded grouped", "past, grouped, padded"])
@pytest.mark.parametrize("seed", range(4))
def test_wrapped(base: str, name: str, seed: int) -> None:
    """The nodes from a random one on moved into a function, both branches of an If, or a Loop."""
    found = checked(of_names([base, name], seed))
    assert found.fused or found.reasons


@pytest.mark.parametrize("total", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)])
def test_share_of_fused_mutants(total: int) -> None:
    """What is harmless is fused, but for a few; printed for the documentation."""
    kinds: Counter[str] = Counter()
    why: Counter[str] = Counter()
    for number in range(total):
        mutant, found = verdict(number)
        kind = (
            "hostile"
            if mutant.hostile
            else "wanted or wrapped"
            if mutant.kept or mutant.wrapped
            else "harmless"
        )
        kinds[f"{kind}, {'declined' if found.reasons else 'fused'}"] += 1
        if kind == "harmless":
            why.update(set(found.reasons))
    print(f"\n{total} mutants: {dict(kinds)}; harmless ones declined: {dict(why)}")
    harmless = kinds["harmless, fused"] + kinds["harmless, declined"]
    assert kinds["harmless, declined"] <= DECLINED * harmless, why
