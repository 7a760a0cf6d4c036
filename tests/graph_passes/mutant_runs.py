"""The check of a mutant: fused with the numbers of the original in ONNX Runtime, or declined with a reason.

Inputs are made to reveal differences: an outlier channel and a loud first key; lengths below and above every window;
batch 1, 3 and more; padding left, right and with gaps; past 0 and more; positions that start again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from zyfa_ort.graph_passes.report import FuseReport

import zyfa_ort
from graph_passes.graph import Array
from graph_passes.mutant_edits import proto
from graph_passes.mutant_plans import HEAD_DIM, Plan
from graph_passes.mutant_twists import TWISTS
from graph_passes.mutant_writing import SEEN
from graph_passes.mutants import Mutant
from graph_passes.running import (
    Feeds,
    assert_untouched,
    fuse,
    fused_session,
    original_session,
)
from zyfa_ort.numerics import TOLERANCES

SCORES: Final = f"{SEEN}_0"
VISIBLE: Final = -9500.0  # a row whose best score is below sees no key


@dataclass(frozen=True)
class Lengths:
    batch: int
    tokens: int
    past: int
    others: int


# The run of large scores, in which -50 hides nothing. With sinks it would leave keys no more than 1e-40.
LOUD: Final = 1
FIXED: Final = Lengths(2, 12, 7, 5)


def lengths(mutant: Mutant) -> list[Lengths]:
    """The runs of one mutant: short, usual, and beyond what its mask or scale does at a length."""
    plan = mutant.plan
    if mutant.fixed:
        return [FIXED]
    found = [Lengths(1, 3, 0, 9), Lengths(3, 12, 7, 5), Lengths(2, 1, 9, 4)]
    twist = TWISTS.get(plan.mask.twist) if plan.mask is not None else None
    reach = max(36, twist.reach if twist else 0, plan.long_scale + 8 if plan.long_scale else 0)
    found.append(Lengths(1 if reach > 100 else 3, reach, 5, 11))
    if twist and twist.batch > 3:
        found.append(Lengths(twist.batch, 6, 2, 3))
    return found


def _activation(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """(B, S, width) or (B, H, S, D): one channel in eight is loud, and so is the first position."""
    array = rng.standard_normal(shape)
    array[..., ::HEAD_DIM] += 2
    first = array[..., :1, :]
    first += np.sign(first)
    return array.astype(np.float32)


def _padding(rng: np.random.Generator, batch: int, keys: int, values: int) -> NDArray[np.int64]:
    """Rows padded left, with gaps, not at all, and right, in turn; 1 up to `values` where a key exists."""
    mask = np.ones((batch, keys), np.int64)
    pad = min(3, keys - 1)
    for row in range(batch):
        kind = (row + keys) % 4
        if kind == 0 and pad:
            mask[row, :pad] = 0
        elif kind == 1:
            mask[row, 1 : keys - 1 : 2] = 0
        elif kind == 2 and pad:
            mask[row, -pad:] = 0
    return mask if values == 1 else mask * rng.integers(1, values + 1, mask.shape)


def feeds(mutant: Mutant, at: Lengths, seed: int) -> dict[str, Array]:
    """Values for the inputs of the mutant's graph. Names of dimensions may have been mutated: inputs are known by name."""
    plan, rng = mutant.plan, np.random.default_rng(seed)
    past = at.past if plan.past else 0
    if plan.past_order == "heads":
        past = 0
    new = at.others if plan.cross else at.tokens
    keys = past + new
    wide, narrow = plan.heads * HEAD_DIM, plan.kv_heads * HEAD_DIM
    cached = at.tokens if plan.past_order == "heads" else past
    values = 3 if plan.mask is not None and plan.mask.exists in ("only one", "over one", "not two") else 1
    shapes: dict[str, tuple[int, ...]] = {
        "query": (at.batch, at.tokens, wide),
        "key": (at.batch, new, narrow),
        "value": (at.batch, new, narrow),
        "packed": (at.batch, at.tokens, 3 * wide if plan.source == "gather" else wide + 2 * narrow),
        "past_key": (at.batch, plan.kv_heads, cached, HEAD_DIM),
        "past_value": (at.batch, plan.kv_heads, cached, HEAD_DIM),
    }
    given: dict[str, Array] = {}
    for value in mutant.graph.inputs:
        name = value.name
        if name in shapes:
            given[name] = _activation(rng, shapes[name])
            if name == "query" and seed == LOUD and not plan.sinks:
                given[name] *= 8
        elif name == "bias":
            leading = {"whole": (at.batch, plan.heads), "heads": (1, plan.heads), "rows": ()}
            shape = (*leading[plan.bias.split()[0]], at.tokens, keys)
            given[name] = 2 * rng.standard_normal(shape).astype(np.float32)
        elif name == "attention_mask":
            mask = _padding(rng, at.batch, keys, values)
            if plan.mask is not None and plan.mask.exists == "not negative":
                mask = 2 * mask - 1
            given[name] = mask.astype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        elif name == "position_ids":
            given[name] = _positions(at.batch, at.tokens)
        elif name == "first":
            given[name] = np.array(seed % 2 == 0)
        else:
            raise AssertionError(f"no values for input {name}")
    return given


def _positions(batch: int, tokens: int) -> NDArray[np.int64]:
    """0, 1, ...; from the second row on starting again in the middle."""
    rows = np.tile(np.arange(tokens), (batch, 1))
    for row in range(1, batch):
        rows[row, tokens // (row + 1) :] -= tokens // (row + 1)
    return rows


@dataclass(frozen=True)
class Verdict:
    """fused sites, and the reasons of declined ones."""

    fused: int
    reasons: tuple[str, ...]
    report: FuseReport


def watched(mutant: Mutant) -> onnx.ModelProto:
    """The graph before wraps, with the masked scores as an output more."""
    model = proto(mutant.plain)
    if all(value.name != SCORES for value in model.graph.output):
        model.graph.output.append(helper.make_tensor_value_info(SCORES, onnx.TensorProto.FLOAT, None))
    return model


def rows_with_keys(scores: Array) -> NDArray[np.bool_]:
    """(B, H, S): the best score is no hidden one."""
    best = np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf).max(axis=-1)
    return np.asarray(best > VISIBLE)


def _by_heads(plan: Plan, output: Array) -> Array:
    """(B, H, S, D)"""
    if not plan.merge:
        return output
    return np.moveaxis(output.reshape(*output.shape[:2], plan.heads, -1), 2, 1)


def compare(plan: Plan, name: str, got: Array, wanted: Array, rows: NDArray[np.bool_]) -> list[str]:
    """What is wrong with one output."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return [f"{name}: expected {wanted.dtype} {wanted.shape}, got {got.dtype} {got.shape}"]
    if name == "output" or name.startswith("other_"):
        got, wanted = (_by_heads(plan, one)[rows] for one in (got, wanted))
        return [f"{name}: {one}" for one in TOLERANCES["fp32"].violations(got, wanted)]
    same = np.allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
    return [] if same else [f"{name}: differs"]


def check(mutant: Mutant) -> Verdict:
    """Raises AssertionError when numbers differ, a model is not valid, or a refusal has no reason."""
    model = proto(mutant.graph)
    onnx.checker.check_model(model)
    after, report = fuse(model)
    declined = [site for site in report.sites if site.status == "declined"]
    assert all(site.reason and site.at for site in declined), "a refusal has no reason"
    if not report.fused:
        assert_untouched(after, model)
    else:
        _check_numbers(mutant, model, after)
    return Verdict(report.fused, tuple(site.reason for site in declined), report)


def _check_numbers(mutant: Mutant, model: onnx.ModelProto, after: onnx.ModelProto) -> None:
    plan = mutant.plan
    # The optimiser's constant folding draws other random numbers from the same seed.
    oracle, fused = original_session(watched(mutant)), fused_session(after, as_written=bool(plan.train))
    original = original_session(model) if mutant.wrapped else None
    for seed, at in enumerate(lengths(mutant)):
        given = feeds(mutant, at, seed)
        seen = _run(
            oracle,
            {name: array for name, array in given.items() if name != "first"} if mutant.wrapped else given,
        )
        wanted = seen if original is None else _run(original, given)
        rows = rows_with_keys(seen[SCORES])
        got = _run(fused, given)
        wrong = [one for name in got for one in compare(plan, name, got[name], wanted[name], rows)]
        assert not wrong, f"{at}: {wrong}"


def _run(session: Any, given: Feeds) -> dict[str, Array]:
    return zyfa_ort.run(session, given)


def reveals(mutant: Mutant, tamed: Mutant) -> bool:
    """Whether some run tells the two apart, by rows that see a key."""
    sessions = [original_session(watched(one)) for one in (mutant, tamed)]
    known = {value.name for value in tamed.graph.inputs}
    for seed, at in enumerate(lengths(mutant)):
        given = feeds(mutant, at, seed)
        one = _run(sessions[0], given)
        other = _run(sessions[1], {name: array for name, array in given.items() if name in known})
        rows = rows_with_keys(one[SCORES]) & rows_with_keys(other[SCORES])
        if compare(mutant.plan, "output", one["output"], other["output"], rows):
            return True
    return False
