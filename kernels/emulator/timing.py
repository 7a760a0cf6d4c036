"""Modelled time of a kernel on the MI355X: cycles, what they were lost on, and how much of it hangs on facts nobody published.

Everything here is MODELLED, not measured: docs/timing_model.md says from what, and how far it was right where figures exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from zyfa_ort.kernels.emulator import Arguments, Result, _native, launch

SIMDS = 4


@dataclass(frozen=True)
class Constant:
    """One number of the model. Source: docs, LLVM, trace (published traces of the chip), derived, or guess."""

    name: str
    value: float
    unit: str
    source: str
    confidence: str
    text: str


@dataclass(frozen=True)
class Place:
    """An instruction and the cycles waves lost at it; conflict_cycles are LDS cycles lost to bank conflicts."""

    offset: int
    instruction: str
    kind: str
    executed: int
    stalled: int
    conflict_cycles: int
    stalls: dict[str, int]


@dataclass(frozen=True)
class Chip:
    """The whole grid on all compute units.

    `cycles` until the last workgroup ends, `mean_cycles` that an occupied place worked (the rest is imbalance),
    `useful_matrix` is FLOP over the peak of the chip in that time, `useful_matrix_occupied` over the part that had work.
    """

    cycles: int
    mean_cycles: float
    microseconds: float
    tflops: float
    useful_matrix: float
    useful_matrix_occupied: float
    places: int
    sampled: bool
    durations: str

    @property
    def imbalance(self) -> float:
        """Share of the time that an occupied place waits for the last workgroup."""
        return 1 - self.mean_cycles / self.cycles if self.cycles else 0.0


@dataclass(frozen=True)
class Timing:
    """Cycles of the timed compute units (one after the other when several were timed) and of the whole chip."""

    result: Result
    cycles: int
    instructions: int
    lds_busy: int
    lds_bytes: int
    conflict_cycles: int
    memory_busy: int
    memory_bytes: int
    simds: list[dict[str, int]]
    waves: list[dict[str, dict[str, int]]]
    places: list[Place]
    occupancy: dict[str, int]
    chip: Chip
    runs: list[tuple[list[int], list[int]]]
    constants: dict[str, float]
    trace: str = field(repr=False, default="")
    trace_dropped: int = 0

    @property
    def used_simds(self) -> list[dict[str, int]]:
        return [simd for simd in self.simds if simd["waves"]]

    def _share(self, what: str) -> float:
        """Of the cycles of the SIMDs that had waves."""
        return sum(s[what] for s in self.used_simds) / (self.cycles * len(self.used_simds))

    @property
    def matrix_busy(self) -> float:
        return self._share("matrix")

    @property
    def valu_busy(self) -> float:
        return self._share("valu")

    @property
    def doubtful_overlap(self) -> float:
        """Vector cycles that ran beside a matrix instruction although some sources say their class cannot."""
        return self._share("doubtful_overlap")

    @property
    def lds_utilisation(self) -> float:
        return self.lds_busy / self.cycles

    @property
    def stalls(self) -> dict[str, int]:
        """Wave-cycles by cause, most first."""
        total: dict[str, int] = {}
        for wave in self.waves:
            for cause, cycles in wave["stalls"].items():
                total[cause] = total.get(cause, 0) + cycles
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def to_dict(self, top: int = 20) -> dict[str, Any]:
        """For JSON: figures, the `top` most stalled places, no trace."""
        return {
            "modelled": True,
            "cycles": self.cycles,
            "instructions": self.instructions,
            "matrix_busy": self.matrix_busy,
            "valu_busy": self.valu_busy,
            "lds_utilisation": self.lds_utilisation,
            "conflict_cycles": self.conflict_cycles,
            "doubtful_overlap": self.doubtful_overlap,
            "memory_bytes": self.memory_bytes,
            "stalls": self.stalls,
            "occupancy": self.occupancy,
            "chip": {**vars(self.chip), "imbalance": self.chip.imbalance},
            "waves": self.waves,
            "places": [vars(place) for place in self.places[:top]],
            "constants": self.constants,
        }

    def to_json(self, top: int = 20) -> str:
        return json.dumps(self.to_dict(top), indent=1)

    def write_trace(self, path: Path | str) -> None:
        """The trace for chrome://tracing or ui.perfetto.dev. Raises ValueError when none was asked for."""
        if not self.trace:
            raise ValueError("timing: this launch has no trace; pass trace=(begin, end) in cycles to time()")
        Path(path).write_text(self.trace, encoding="utf-8")

    def table(self, top: int = 12) -> str:
        """A text to print."""
        chip, group = self.chip, self.occupancy
        lines = [
            f"MODELLED, not measured ({self.constants['clock_ghz']:g} GHz; durations: {chip.durations})",
            f"chip    {chip.cycles} cycles = {chip.microseconds:.2f} us, {chip.tflops:.1f} TFLOP/s, "
            f"{chip.useful_matrix:.1%} of the matrix peak ({chip.useful_matrix_occupied:.1%} of what had work), "
            f"imbalance {chip.imbalance:.1%}",
            f"unit    {self.cycles} cycles over {len(self.runs)} timed runs, {group['groups']} workgroups per unit "
            f"(VGPRs allow {group['by_vgprs']}, LDS {group['by_lds']}, wave slots {group['by_waves']})",
            f"busy    matrix {self.matrix_busy:.1%}, VALU {self.valu_busy:.1%}, LDS {self.lds_utilisation:.1%} "
            f"({self.conflict_cycles} conflict cycles); doubtful overlap {self.doubtful_overlap:.1%}",
            "stalls  " + ", ".join(f"{cause} {cycles}" for cause, cycles in self.stalls.items()),
            f"{'stalled':>10} {'executed':>9}  at",
        ]
        for place in self.places[:top]:
            if place.stalled == 0:
                break
            causes = ", ".join(f"{c} {n}" for c, n in sorted(place.stalls.items(), key=lambda i: -i[1])[:3])
            lines.append(
                f"{place.stalled:>10} {place.executed:>9}  +{place.offset:#x} {place.instruction} ({causes})"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Row:
    """One run of the sensitivity table; `change` is relative to the first row's microseconds."""

    setting: str
    cycles: int
    microseconds: float
    matrix_busy: float
    change: float


# What is open, and the values it may have. None of these is settled by a published measurement.
UNCERTAINTIES: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("convert at quarter rate", {"convert_cycles": 16}),
    ("packed convert at quarter rate", {"convert_packed_cycles": 16}),
    ("v_pk_*_f32 not beside a matrix instruction", {"coexec_packed_f32": 0}),
    ("transcendentals not beside it", {"coexec_trans": 0}),
    ("v_cvt_pk_fp8 not beside it", {"coexec_convert_fp8": 0}),
    (
        "none of LLVM's list beside it",
        {"coexec_packed_f32": 0, "coexec_trans": 0, "coexec_convert_fp8": 0, "coexec_dot": 0},
    ),
    ("matrix issue costs no vector slot", {"matrix_head_cycles": 0}),
    ("matrix issue costs 8 cycles", {"matrix_head_cycles": 8}),
    ("LDS reads 128 B/cycle", {"lds_bytes_per_clock": 128}),
    ("transposed reads twice as long", {"lds_transpose_factor": 2}),
    ("transposed reads four times as long", {"lds_transpose_factor": 4}),
    ("permlane 4 cycles", {"permlane_cycles": 4}),
    ("permlane 20 cycles", {"permlane_cycles": 20}),
    ("consecutive waves share a SIMD", {"wave_placement": 1}),
    ("half of the loads miss L2", {"l2_hit_rate": 0.5}),
    ("clock 2.0 GHz", {"clock_ghz": 2.0}),
    ("clock 1.6 GHz", {"clock_ghz": 1.6}),
)


def constants() -> list[Constant]:
    """Every number of the model with its source."""
    return [Constant(*row) for row in _native.timing_constants()]


def time(
    code_object: bytes,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Arguments,
    *,
    flops: float = 0.0,
    clock_ghz: float | None = None,
    constants: Mapping[str, float] | None = None,
    work: Sequence[float] | Callable[[int, int, int], float] | None = None,
    max_runs: int = 16,
    run_rest: bool = True,
    trace: tuple[int, int] | None = None,
    trace_events: int = 200_000,
    report_only: bool = False,
    **options: Any,
) -> Timing:
    """Runs a kernel as launch() does and models how long the chip would take.

    `flops`: useful work of the launch, for TFLOP/s. `constants`: values by name instead of those of constants().
    `work`: amount of work of each workgroup, x fastest, or a function of (x, y, z); when more than `max_runs` compute units
    would have to be timed, the durations of the other workgroups are interpolated over it (without it over the workgroup
    number). Those still run, untimed, unless `run_rest` is False. `trace`: cycles [begin, end) of the first timed compute
    unit to record, at most `trace_events`. Other options are launch()'s; `threads` and `order_seed` have no effect here.
    """
    settings: dict[str, Any] = {"flops": float(flops), "max_runs": max_runs, "run_rest": run_rest}
    settings["constants"] = {name: float(value) for name, value in (constants or {}).items()}
    if clock_ghz is not None:
        settings["constants"]["clock_ghz"] = float(clock_ghz)
    if work is not None:
        settings["work"] = [float(w) for w in (_per_group(work, grid) if callable(work) else work)]
    if trace is not None:
        settings |= {"trace_begin": trace[0], "trace_end": trace[1], "trace_events": trace_events}
    result = launch(
        code_object, kernel, grid, block, args, report_only=report_only, timing=settings, **options
    )
    raw = dict(result.details.pop("timing"))
    raw["places"] = [Place(**place) for place in raw["places"]]
    raw["chip"] = Chip(**raw["chip"])
    return Timing(result=result, **raw)


def sensitivity(
    code_object: bytes,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Arguments,
    *,
    settings: Sequence[tuple[str, Mapping[str, float]]] = UNCERTAINTIES,
    constants: Mapping[str, float] | None = None,
    **options: Any,
) -> list[Row]:
    """Times the kernel once as time() does and once for each open question. The arguments keep their contents."""
    rows: list[Row] = []
    for name, changed in (("as modelled", {}), *settings):
        fresh = _copied(args)
        merged = {**(constants or {}), **changed}
        timed = time(code_object, kernel, grid, block, fresh, constants=merged, run_rest=False, **options)
        took = timed.chip.microseconds
        change = took / rows[0].microseconds - 1 if rows else 0.0
        rows.append(Row(name, timed.chip.cycles, took, timed.matrix_busy, change))
    return rows


def sensitivity_table(rows: Sequence[Row]) -> str:
    """The rows as a text to print."""
    width = max(len(row.setting) for row in rows)
    lines = [f"{'MODELLED':<{width}} {'cycles':>10} {'us':>9} {'matrix':>7} {'change':>7}"]
    for row in rows:
        lines.append(
            f"{row.setting:<{width}} {row.cycles:>10} {row.microseconds:>9.2f} {row.matrix_busy:>7.1%} {row.change:>+7.1%}"
        )
    return "\n".join(lines)


def _copied(args: Arguments) -> Arguments:
    if isinstance(args, bytes):
        return args
    if isinstance(args, Mapping):
        return {name: array.copy() for name, array in args.items()}
    return [value.copy() if isinstance(value, np.ndarray) else value for value in args]


def _per_group(work: Callable[[int, int, int], float], grid: int | Sequence[int]) -> list[float]:
    x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1, 1)[:3]
    return [work(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
