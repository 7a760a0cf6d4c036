"""A kernel as a list of instructions with labels; text comes out at the end, after waits and wait states are derived."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from zyfa_ort.kernels.asm.isa import (
    EXEC,
    M0,
    TABLE,
    VCC,
    Operand,
    OperandError,
    Row,
    check,
    is_literal,
    text_of,
)
from zyfa_ort.kernels.asm.registers import Register

Unit = tuple[str, int]
SCC: Unit = ("scc", 0)
LITERAL_FREE = ("v_fma_f32", "v_pk", "v_max3", "v_or3", "v_bfi", "v_maximum3", "v_med3", "v_lshl_", "v_and_or",
                "v_bfe", "v_mul_lo", "v_mad", "v_cvt_pk", "v_mfma")  # fmt: skip


@dataclass
class Instruction:
    row: Row
    results: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    modifiers: str = ""
    produces: str = ""  # token of an LDS-DMA: what lands in LDS
    origin: str = ""  # generator file and line
    note: str = ""
    place: tuple[str, str] = ("", "")

    def reads(self) -> set[Unit]:
        touched = {u for o in self.sources if isinstance(o, Register) for u in o.units()}
        if "merge" in self.row.extra or "swap" in self.row.extra:
            touched |= {u for o in self.results if isinstance(o, Register) for u in o.units()}
        if "rscc" in self.row.extra:
            touched.add(SCC)
        if "rvcc" in self.row.extra:
            touched |= set(VCC.units())
        if "m0" in self.row.extra:
            touched |= set(M0.units())
        if self.row.unit in ("valu", "trans", "vmem", "dma", "lds"):
            touched |= set(EXEC.units())
        return touched

    def writes(self) -> set[Unit]:
        touched = {u for o in self.results if isinstance(o, Register) for u in o.units()}
        if "swap" in self.row.extra:
            touched |= {u for o in self.sources if isinstance(o, Register) for u in o.units()}
        if "scc" in self.row.extra:
            touched.add(SCC)
        return touched

    def text(self) -> str:
        name = self.row.name
        operands = [text_of(o) for o in (*self.results, *self.sources)]
        if name == "buffer_load_lds_dwordx4":
            name, tail = "buffer_load_dwordx4", " lds"
        else:
            tail = ""
        spaced = f" {self.modifiers}" if self.modifiers else ""
        return f"{name} {', '.join(operands)}{spaced}{tail}".rstrip()


@dataclass
class Label:
    name: str


@dataclass
class Require:
    """Everything that carries one of these tokens has landed in LDS, or in these registers (a wait is derived from it)."""

    tokens: tuple[str | Unit, ...]
    place: tuple[str, str] = ("", "")


@dataclass
class Rename:
    """From here on the tokens have these names: a loop counts on from one tile to the next."""

    names: dict[str, str]


Item = Instruction | Label | Require | Rename


@dataclass
class Program:
    """Instructions are written as methods: `p.v_fma_f32(result, a, b, c)`."""

    name: str
    items: list[Item] = field(default_factory=list)
    place: tuple[str, str] = ("", "")  # phase and slot of what is being written
    asides: list[Callable[[], None]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Instruction]:
        if name not in TABLE:
            raise AttributeError(f"program {self.__dict__.get('name')}: no instruction {name!r} in the table")
        row = TABLE[name]

        def write(*operands: Operand, modifiers: str = "", produces: str = "", note: str = "") -> Instruction:
            made = build(row, operands, modifiers, produces, note)
            made.place = self.place
            self.items.append(made)
            return made

        return write

    def label(self, name: str) -> None:
        self.items.append(Label(name))

    def require(self, *tokens: str | Unit) -> None:
        self.items.append(Require(tokens, self.place))

    def rename(self, **names: str) -> None:
        self.items.append(Rename(names))

    def at(self, phase: str, slot: str) -> None:
        """What is written from here on belongs to this place of the schedule."""
        self.place = phase, slot

    def aside(self, write: Callable[[], None]) -> None:
        """Writes a seldom taken way behind the end of the program, where no other instruction falls into it."""
        self.asides.append(write)

    def write_asides(self) -> None:
        while self.asides:
            self.asides.pop(0)()

    def captured(self, write: Callable[[], None]) -> list[Item]:
        """The items that `write` makes, to be placed by the caller."""
        kept, self.items = self.items, []
        try:
            write()
            return self.items
        finally:
            self.items = kept


def build(
    row: Row, operands: tuple[Operand, ...], modifiers: str = "", produces: str = "", note: str = ""
) -> Instruction:
    """One checked instruction. Raises OperandError."""
    kinds = (*row.results, *row.sources)
    if len(operands) != len(kinds):
        raise OperandError(
            f"{row.name}: takes {len(kinds)} operands ({' '.join(kinds)}), got {len(operands)}"
        )
    for index, (kind, operand) in enumerate(zip(kinds, operands, strict=True)):
        check(
            row,
            f"result {index}" if index < len(row.results) else f"source {index - len(row.results)}",
            kind,
            operand,
        )
        if row.name.startswith(LITERAL_FREE) and is_literal(operand) and kind[0] != "i":
            raise OperandError(
                f"{row.name}: {operand!r} would need a literal, which this encoding does not have"
            )
    cut = len(row.results)
    return Instruction(row, operands[:cut], operands[cut:], modifiers, produces, _origin(), note)


def _origin() -> str:
    frame = inspect.currentframe()
    while frame is not None and Path(frame.f_code.co_filename).name == "program.py":
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else ""
