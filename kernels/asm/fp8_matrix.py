"""The product phase: scores S^T = K·Q^T of a tile, output O^T += V^T·P and row sums of the tile before.

Waves that see the tile and have probabilities at hand take the way of the table in fp8_schedule.py. The others, and tiles
with two terms per probability or NaN among the values, take slower ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from zyfa_ort.kernels.asm import fp8_fetch, fp8_values
from zyfa_ort.kernels.asm.fp8_config import (
    HIDDEN_KEYS,
    KEY_FRAGMENTS,
    ONE_TERM,
    PREFETCH,
    TWO_TERMS,
    Fp8Config,
)
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.fp8_schedule import Slot, product_slots
from zyfa_ort.kernels.asm.fp8_softmax import tile_kind
from zyfa_ort.kernels.asm.program import Instruction, Item, Program
from zyfa_ort.kernels.asm.registers import EXEC, Register

SCC = ("scc", 0)


def write(p: Program, r: Roles, config: Fp8Config) -> None:
    """Both ways through the phase, up to the barrier."""
    t = r.scratch[0]
    p.s_xor_b32(t, r.terms, ONE_TERM)
    p.s_xor_b32(r.scratch[1], r.visible, 1)
    p.s_or_b32(t, t, r.scratch[1])
    p.s_cbranch_scc1("apart")
    slots = product_slots(config)
    shadows = _shadows(p, r, config, slots)
    for row, (slot, shadow) in enumerate(zip(slots, shadows, strict=True)):
        p.at("product", f"{row}")
        _multiply(p, r, slot.matrix, r.high, r.block_scale)
        _load(p, r, slot)
        p.items += shadow
    p.at("product", "end")
    p.label("products_done")
    # What this wave fetched for the tile after the next has landed before anybody may pass the barriers up to its use.
    p.require("tile_2")
    p.aside(lambda: _apart(p, r, config, slots))


def _apart(p: Program, r: Roles, config: Fp8Config, slots: tuple[Slot, ...]) -> None:
    """The same for a wave that does not see the tile or has nothing to accumulate, for two terms, for hidden keys."""
    scores, sums = _split(slots)
    p.at("product apart", "")
    p.label("apart")
    p.s_cmp_eq_u32(r.terms, 0)
    p.s_cbranch_scc1("nothing_at_hand")
    _load(p, r, Slot("", tuple(f"value {i}" for i in range(len(r.value)))))
    p.s_and_b32(r.scratch[0], r.terms, HIDDEN_KEYS)
    p.s_cbranch_scc1("hidden_keys")
    p.s_cmp_eq_u32(r.visible, 0)
    p.s_cbranch_scc1("accumulate")
    _products(p, r, scores)
    p.label("accumulate")
    if r.low is not None:
        p.s_and_b32(r.scratch[0], r.terms, TWO_TERMS)
        p.s_cbranch_scc0("one_term")
        _products(p, r, sums, low=True)
        p.label("one_term")
    _products(p, r, sums, scalar=_scalar_work(p, r, config, len(sums)))
    _end_apart(p, r, config)

    p.at("product apart, nothing at hand", "")
    p.label("nothing_at_hand")
    p.s_cmp_eq_u32(r.visible, 0)
    p.s_cbranch_scc1("nothing_to_do")
    _products(p, r, scores, scalar=_scalar_work(p, r, config, len(scores)))
    _end_apart(p, r, config)
    p.label("nothing_to_do")
    p.items += _scalar_work(p, r, config, 1)[0]
    _end_apart(p, r, config)

    p.at("product apart, hidden keys", "")
    p.label("hidden_keys")
    p.s_cmp_eq_u32(r.visible, 0)
    p.s_cbranch_scc1("hidden_keys_only")
    _products(p, r, scores, collect=True)
    p.s_branch("judge")
    p.label("hidden_keys_only")
    for dims in range(len(r.value)):
        fp8_values.collect_nan(p, r, dims)
    p.label("judge")
    fp8_values.judge_nan(p, r)
    p.s_branch("accumulate")


def _split(slots: tuple[Slot, ...]) -> tuple[list[Slot], list[Slot]]:
    """Scores with those of their fragments that come late; products with values."""
    scores = [
        Slot(slot.matrix, tuple(filter(_is_late_key, slot.loads)))
        for slot in slots
        if slot.matrix.startswith("scores")
    ]
    return scores, [Slot(slot.matrix) for slot in slots if not slot.matrix.startswith("scores")]


def _products(
    p: Program,
    r: Roles,
    slots: list[Slot],
    low: bool = False,
    collect: bool = False,
    scalar: list[list[Item]] | None = None,
) -> None:
    """`collect` looks for NaN among the values in the shadow of the scores; `scalar` goes there too, slot by slot."""
    operands = (r.low, r.low_scale) if low and r.low is not None else (r.high, r.block_scale)
    for number, slot in enumerate(slots):
        _multiply(p, r, slot.matrix, *operands)
        _load(p, r, slot)
        if collect and number >= len(slots) - len(r.value):
            fp8_values.collect_nan(p, r, number - len(slots) + len(r.value))
        if scalar is not None:
            p.items += scalar[number]


def _scalar_work(p: Program, r: Roles, config: Fp8Config, slots: int) -> list[list[Item]]:
    """Everything but the stages, which the next keys still need."""

    def write_parts() -> None:
        for name, part in SCALAR_PARTS.items():
            if name != "stages":
                part(p, r, config)

    return spread(p.captured(write_parts), slots)


def _end_apart(p: Program, r: Roles, config: Fp8Config) -> None:
    load_keys(p, r)
    SCALAR_PARTS["stages"](p, r, config)
    p.s_branch("products_done")


def load_keys(p: Program, r: Roles) -> None:
    """The fragments with which a product phase begins, of the tile at r.key_stage.

    The registers that the last product of the scores reads come last.
    """
    last = (2 * len(r.query) - 1) % KEY_FRAGMENTS
    for i in range(last + 1, last + 1 + KEY_FRAGMENTS):
        _load(p, r, Slot("", (f"key {i % KEY_FRAGMENTS}",)))


def _is_late_key(load: str) -> bool:
    kind, number = load.split()
    return kind == "key" and int(number) >= KEY_FRAGMENTS


SCALAR_PARTS: dict[str, Callable[[Program, Roles, Fp8Config], None]] = {
    "fetch": lambda p, r, config: fp8_fetch.fetch(p, r, config, PREFETCH),
    "kind": lambda p, r, config: tile_kind(p, r, config),
    "next": lambda p, r, config: fp8_fetch.next_tile(p, r),
    "stages": fp8_fetch.next_stages,
}


def _shadows(p: Program, r: Roles, config: Fp8Config, slots: tuple[Slot, ...]) -> list[list[Item]]:
    """The scalar work of every row: each part in order, spread evenly over the rows that name it."""
    shadows: list[list[Item]] = [[] for _ in slots]
    for name, part in SCALAR_PARTS.items():
        rows = [row for row, slot in enumerate(slots) if slot.scalar == name]
        pieces = spread(p.captured(partial(part, p, r, config)), len(rows))
        for row, piece in zip(rows, pieces, strict=True):
            for item in piece:
                assert isinstance(item, Instruction)
                item.place = ("product", f"{row}")
            shadows[row] = piece
    return shadows


def spread(items: list[Item], count: int) -> list[list[Item]]:
    """Pieces of about one size, cut where neither SCC nor a changed EXEC is alive."""
    pieces: list[list[Item]] = []
    begin = 0
    for piece in range(1, count + 1):
        end = max(begin, round(len(items) * piece / count))
        while end < len(items) and _state_is_live(items, end):
            end += 1
        pieces.append(items[begin:end])
        begin = end
    return pieces


def _state_is_live(items: list[Item], at: int) -> bool:
    rest = [item for item in items[at:] if isinstance(item, Instruction)]
    if sum(bool(item.writes() & set(EXEC.units())) for item in rest) % 2:
        return True
    for item in rest:
        if SCC in item.reads():
            return True
        if SCC in item.writes():
            return False
    return False


def _multiply(p: Program, r: Roles, matrix: str, probabilities: Register, scale: Register) -> None:
    kind, *numbers = matrix.split()
    if kind == "scores":
        block, step = map(int, numbers)
        fragment = r.key[(2 * step + block) % KEY_FRAGMENTS]
        p.v_mfma_f32_32x32x64_f8f6f4(r.scores[block], fragment, r.query[step], r.scores[block] if step else 0)
        return
    target, fragment = (r.row_sum, r.ones) if kind == "sum" else (
        r.result[int(numbers[0])], r.value[int(numbers[0])])  # fmt: skip
    p.v_mfma_scale_f32_32x32x64_f8f6f4(
        target, fragment, probabilities, target, r.unit_scale, scale, modifiers="op_sel_hi:[0,0,0]"
    )


def _load(p: Program, r: Roles, slot: Slot) -> None:
    for load in slot.loads:
        kind, number = load.split()
        if kind == "value":
            fp8_values.load_value(p, r, int(number), r.value_stage)
        else:
            _load_key(p, r, int(number), r.key_stage if not _is_late_key(load) else r.stage)


def _load_key(p: Program, r: Roles, number: int, stage: Register) -> None:
    block, step = number % 2, number // 2
    fragment = r.key[number % KEY_FRAGMENTS]
    row_bytes = 128 if step < 2 else 64
    for half in range(2):
        moved = r.temporary[2 * (step % 2) + half]
        if block == 0:  # the other block lies at a constant distance
            p.v_add_u32(moved, stage, r.key_address[2 * step + half])
        p.ds_read_b128(fragment[4 * half : 4 * half + 4], moved, modifiers=f"offset:{32 * row_bytes * block}")
