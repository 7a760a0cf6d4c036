"""The product phase as a table: one row per matrix instruction, and what is issued in its shadow.

A matrix instruction takes 64 cycles, 16 places for other instructions of the wave. Moving a load is a change of one row.

    matrix   "scores t s"   keys 32t.. of the tile, dims 64s..          "sum"   row sums of the tile before
             "output d"     dims 32d.. of the output, tile before
    loads    "key n"        fragment for "scores t s", n = 2s + t: of the next tile when its own products are behind it
             "value d"      fragment for "output d"
    scalar   parts of the scalar work, spread over the rows that name them: "fetch" of a later tile into LDS,
             "kind" of this tile's vector phase, "next" tile, "stages" of the next product phase
"""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.asm.fp8_config import KEY_FRAGMENTS, OUTPUT_BLOCKS, Fp8Config


@dataclass(frozen=True)
class Slot:
    """One matrix instruction and its shadow."""

    matrix: str
    loads: tuple[str, ...] = ()
    scalar: str = ""


SLOTS_128 = (
    Slot("scores 0 0", ("value 0",), "fetch"),
    Slot("scores 1 0", ("value 1",), "fetch"),
    Slot("scores 0 1", ("value 2",), "fetch"),
    Slot("scores 1 1", ("value 3",), "fetch"),
    Slot("sum", ("key 0",), "fetch"),
    Slot("output 0", ("key 1",), "kind"),
    Slot("output 1", ("key 2",), "kind"),
    Slot("output 2", ("key 3",), "next"),
    Slot("output 3", (), "stages"),
)  # fmt: skip
SLOTS_192 = (
    Slot("scores 0 0", ("value 0",), "fetch"),
    Slot("scores 1 0", ("key 4",), "fetch"),
    Slot("scores 0 1", ("key 5",), "fetch"),
    Slot("scores 1 1", ("value 1",), "fetch"),
    Slot("scores 0 2", ("value 2",), "fetch"),
    Slot("scores 1 2", ("value 3",), "fetch"),
    Slot("sum", ("key 0",), "fetch"),
    Slot("output 0", ("key 1",), "kind"),
    Slot("output 1", ("key 2",), "kind"),
    Slot("output 2", ("key 3",), "next"),
    Slot("output 3", (), "stages"),
)  # fmt: skip


def product_slots(config: Fp8Config) -> tuple[Slot, ...]:
    slots = {128: SLOTS_128, 192: SLOTS_192}[config.head_dim]
    check(slots, config)
    return slots


def check(slots: tuple[Slot, ...], config: Fp8Config) -> None:
    """Every product once, every fragment loaded in time and not while its last reader runs. Raises ValueError."""
    at = {slot.matrix: row for row, slot in enumerate(slots)}
    wanted = {f"scores {t} {s}" for t in range(2) for s in range(config.k_steps)} | {"sum"}
    wanted |= {f"output {d}" for d in range(OUTPUT_BLOCKS)}
    if at.keys() != wanted or len(slots) != len(wanted):
        raise ValueError(
            f"{config.name}: expected {len(wanted)} products, got {[slot.matrix for slot in slots]}"
        )
    loads = {load: row for row, slot in enumerate(slots) for load in slot.loads}
    for fragment in range(2 * config.k_steps):
        row, own = loads[f"key {fragment}"], at[f"scores {fragment % 2} {fragment // 2}"]
        register = fragment % KEY_FRAGMENTS
        readers = [at[f"scores {n % 2} {n // 2}"] for n in range(register, 2 * config.k_steps, KEY_FRAGMENTS)]
        before = [reader for reader in readers if reader < own] if fragment >= KEY_FRAGMENTS else readers
        if not max(before) < row or (fragment >= KEY_FRAGMENTS and not row < own - 1):
            raise ValueError(
                f"{config.name}: key {fragment} in row {row}, but its registers are read in {before}"
            )
    order = [load for slot in slots for load in slot.loads]
    for fragment in range(1, 2 * config.k_steps, 2):
        if order[order.index(f"key {fragment}") - 1] != f"key {fragment - 1}":
            raise ValueError(
                f"{config.name}: key {fragment} is loaded in row {loads[f'key {fragment}']}, but the addresses it uses "
                f"are those of key {fragment - 1}, which must come right before it"
            )
    for block in range(OUTPUT_BLOCKS):
        if not loads[f"value {block}"] < at[f"output {block}"] - 1:
            raise ValueError(
                f"{config.name}: value {block} is loaded in row {loads[f'value {block}']}, too late"
            )
