"""Wait states that gfx950 does not insert by itself: this pass puts s_nop where an instruction comes too early.

The rules are those of docs/gfx950.md, at their stricter reading. The emulator checks the result with code of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.asm.flow import states_before
from zyfa_ort.kernels.asm.isa import PASSES, TABLE
from zyfa_ort.kernels.asm.program import Instruction, Item
from zyfa_ort.kernels.asm.registers import EXEC, M0, Register

HORIZON = 20
AFTER_MATRIX = {2: (4, 5), 4: (6, 8), 8: (10, 12), 16: (18, 20)}  # passes: C overlapping, everything else
WRITE_AFTER_C = {2: 1, 4: 3, 8: 7, 16: 15}

Unit = tuple[str, int]


@dataclass(frozen=True)
class Event:
    """Something done to a register that later instructions must keep away from."""

    kind: str  # matrix, c_read, vector, trans, partial, scalar_m0, wide_store
    passes: int = 0
    whole: tuple[Unit, ...] = ()  # all registers of a matrix result


History = dict[tuple[Unit, Event], int]  # -> wait states since


def _events(item: Instruction) -> list[tuple[Unit, Event]]:
    unit, name = item.row.unit, item.row.name
    if unit == "matrix":
        passes = PASSES[name]
        result, c = item.results[0], item.sources[2]
        assert isinstance(result, Register)
        made = [(u, Event("matrix", passes, tuple(result.units()))) for u in result.units()]
        if isinstance(c, Register):
            made += [(u, Event("c_read", passes)) for u in c.units()]
        return made
    if unit in ("valu", "trans"):
        kinds = ["vector"] + (["trans"] if unit == "trans" else [])
        if "op_sel" in item.modifiers and not name.startswith("v_cvt_pk_fp8"):
            kinds.append("partial")
        return [(u, Event(kind)) for u in item.writes() for kind in kinds]
    if unit == "salu" and set(M0.units()) & item.writes():
        return [(M0.units()[0], Event("scalar_m0"))]
    if unit == "vmem" and "store" in name and name.endswith(("x3", "x4")):
        data = item.sources[0]
        assert isinstance(data, Register)
        return [(u, Event("wide_store")) for u in data.units()]
    return []


def _needed(item: Instruction, register: Unit, event: Event) -> int:
    """Wait states the instruction must keep from the event at the register; 0 when it does not care."""
    unit, name = item.row.unit, item.row.name
    reads = register in item.reads()
    writes = register in item.writes()
    if event.kind == "matrix":
        overlap, other = AFTER_MATRIX[event.passes]
        if unit == "matrix":
            c = item.sources[2]
            if any(
                register in o.units()
                for o in (*item.sources[:2], *item.sources[3:])
                if isinstance(o, Register)
            ):
                return other
            if isinstance(c, Register) and register in c.units():
                same = tuple(c.units()) == event.whole and PASSES[name] == event.passes
                return (2 if event.passes == 2 else 0) if same else overlap
            return 0
        touched = reads or (writes and unit in ("valu", "trans"))
        return other if touched and unit in ("valu", "trans", "vmem", "lds", "dma") else 0
    if event.kind == "c_read":
        return WRITE_AFTER_C[event.passes] if writes and unit in ("valu", "trans") else 0
    if event.kind == "vector":
        return _after_vector(item, register, reads)
    if event.kind == "trans":
        return 1 if reads and unit == "valu" else 0
    if event.kind == "partial":
        return 1 if reads and unit in ("valu", "trans") else 0
    if event.kind == "scalar_m0":
        return 1 if unit == "dma" else 0
    return 2 if writes and unit in ("valu", "trans") else 0  # wide_store


def _after_vector(item: Instruction, register: Unit, reads: bool) -> int:
    unit, name = item.row.unit, item.row.name
    if register in EXEC.units():
        return {"matrix": 4}.get(unit, 5 if name.startswith("v_permlane") else 4 if "lane" in name else 0)
    if not reads:
        return 0
    if unit == "matrix":
        return 2
    if name.startswith("v_permlane"):
        return 2
    if name.startswith("v_readfirstlane"):
        return 1
    if register[0] == "s":
        return 2 if unit in ("valu", "trans") else 5 if unit in ("vmem", "dma", "branch") else 0
    return 0


def _states(item: Item) -> int:
    if not isinstance(item, Instruction):
        return 0
    return int(str(item.sources[0])) + 1 if item.row.name == "s_nop" else 1


def _missing(history: History, item: Item) -> int:
    if not isinstance(item, Instruction):
        return 0
    return max((_needed(item, r, e) - age for (r, e), age in history.items()), default=0)


def _step(history: History, item: Item) -> History:
    missing = max(0, _missing(history, item))
    passed = missing + _states(item)
    aged = {key: age + passed for key, age in history.items() if age + passed < HORIZON}
    if isinstance(item, Instruction):
        aged.update(dict.fromkeys(_events(item), 0))
    return aged


def _join(one: History, other: History) -> History:
    merged = dict(one)
    for key, age in other.items():
        merged[key] = min(age, merged.get(key, age))
    return merged


def with_wait_states(items: list[Item]) -> list[Item]:
    """The program with s_nop where needed: as few as the rules allow on the worst way to each place."""
    made: list[Item] = []
    start: History = {}
    before = states_before(items, start, _step, _join)
    for item, history in zip(items, before, strict=True):
        missing = _missing(history, item) if history is not None else 0
        while missing > 0:
            assert isinstance(item, Instruction)
            made.append(
                Instruction(TABLE["s_nop"], (), (min(missing, 8) - 1,), origin="hazards.py", place=item.place)
            )
            missing -= min(missing, 8)
        made.append(item)
    return made
