"""The schedule of an FP8 prefill kernel as a text to read, and what a tile costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from zyfa_ort.kernels.asm.fp8_config import TILE_KEYS, Fp8Config
from zyfa_ort.kernels.asm.fp8_prefill import Kernel, build
from zyfa_ort.kernels.asm.fp8_schedule import product_slots
from zyfa_ort.kernels.asm.isa import PASSES
from zyfa_ort.kernels.asm.program import Instruction

# Cycles that an instruction holds its unit; docs/timing_model.md says from where.
UNIT_CYCLES = 4
SLOW = {"trans": 8, "v_permlane32_swap_b32": 8, "v_mul_lo_u32": 16}
COLUMNS = ("place", "matrix instruction", "loads", "scalar part", "vector", "scalar", "LDS", "DMA", "waits")
VECTOR = ("valu", "trans")


@dataclass(frozen=True)
class Budget:
    """What one tile without hidden keys costs a wave: instructions by class, cycles of the units. Modelled."""

    product: Counter[str]
    vector: Counter[str]
    matrix_cycles: int
    useful_matrix_cycles: int
    product_issue: int
    vector_issue: int
    vector_unit: int  # of both phases together

    @property
    def phase(self) -> int:
        """One wave group multiplies while the other makes probabilities: the longer of the two."""
        return max(self.matrix_cycles, self.product_issue, self.vector_issue, self.vector_unit)

    @property
    def bound(self) -> float:
        """Useful share of the matrix peak that the phases allow."""
        return self.useful_matrix_cycles / self.phase


def budget(kernel: Kernel) -> Budget:
    product, vector = (_instructions(kernel, phase) for phase in ("product", "vector"))
    matrix = [i for i in product if i.row.unit == "matrix"]
    cycles = {i.row.name: 4 * PASSES[i.row.name] for i in matrix}
    total = sum(cycles[i.row.name] for i in matrix)
    row_sum = 4 * PASSES["v_mfma_scale_f32_32x32x64_f8f6f4"]
    return Budget(
        product=Counter(i.row.unit for i in product),
        vector=Counter(i.row.unit for i in vector),
        matrix_cycles=total,
        useful_matrix_cycles=total - row_sum,
        product_issue=sum(map(_issue_cycles, product)),
        vector_issue=sum(map(_issue_cycles, vector)),
        vector_unit=sum(map(_vector_cycles, product + vector)),
    )


def _instructions(kernel: Kernel, phase: str) -> list[Instruction]:
    return [i for i in kernel.items if isinstance(i, Instruction) and i.place[0] == phase]


def _issue_cycles(item: Instruction) -> int:
    if item.row.name == "s_nop":
        return UNIT_CYCLES * (int(str(item.sources[0])) + 1)
    return _vector_cycles(item) or UNIT_CYCLES


def _vector_cycles(item: Instruction) -> int:
    if item.row.unit == "matrix":
        return UNIT_CYCLES
    if item.row.unit not in VECTOR:
        return 0
    return SLOW.get(item.row.name, SLOW.get(item.row.unit, UNIT_CYCLES))


def schedule(config: Fp8Config) -> str:
    """Both phases of a tile without hidden keys, row by row, then the budget and the registers."""
    kernel = build(config)
    rows = [COLUMNS, *_product_rows(kernel), *_vector_rows(kernel)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(
        [config.name, "", *lines, "", *_budget_lines(budget(kernel)), "", *_register_lines(kernel), ""]
    )


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _product_rows(kernel: Kernel) -> list[tuple[str, ...]]:
    slots = product_slots(kernel.config)
    named = [
        ("begin", "", "", ""),
        *((str(n), s.matrix, ", ".join(s.loads), s.scalar) for n, s in enumerate(slots)),
    ]
    return [
        (f"product {place}", *texts, *_counts(kernel, "product", place))
        for place, *texts in (*named, ("end", "", "", ""))
    ]


def _vector_rows(kernel: Kernel) -> list[tuple[str, ...]]:
    places = dict.fromkeys(i.place[1] for i in _instructions(kernel, "vector"))
    return [(f"vector {place}", "", "", "", *_counts(kernel, "vector", place)) for place in places]


def _counts(kernel: Kernel, phase: str, place: str) -> tuple[str, ...]:
    here = [i for i in _instructions(kernel, phase) if i.place[1] == place]
    count = Counter("vector" if i.row.unit in VECTOR else i.row.unit for i in here)
    waits = [i.text().removeprefix("s_") for i in here if i.row.unit in ("control", "branch")]
    return (
        *(str(count[unit] or "") for unit in ("vector", "salu", "lds", "dma")),
        ", ".join(w.removeprefix("waitcnt ") for w in waits),
    )


def _budget_lines(b: Budget) -> list[str]:
    def classes(counter: Counter[str]) -> str:
        return ", ".join(f"{unit} {count}" for unit, count in sorted(counter.items()))

    return [
        f"a tile of {TILE_KEYS} keys x 32 rows, MODELLED cycles of a wave",
        f"product phase  {classes(b.product)}",
        f"vector phase   {classes(b.vector)}",
        f"matrix pipe {b.matrix_cycles} ({b.useful_matrix_cycles} useful); issue: product {b.product_issue}, "
        f"vector {b.vector_issue}; vector unit of both waves {b.vector_unit}",
        f"a phase takes {b.phase}: at most {b.bound:.1%} of the matrix peak",
    ]


def _register_lines(kernel: Kernel) -> list[str]:
    return [
        f"{kernel.limits.total_vgprs} vector, {kernel.limits.sgprs} scalar registers, {kernel.limits.lds_bytes} bytes of LDS",
        kernel.roles.vector.table(),
    ]
