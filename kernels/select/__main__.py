"""python -m zyfa_ort.kernels.select --problem q_len=4096 q_heads=32 kv_heads=8 dtype=bfloat16 precision=fp8
python -m zyfa_ort.kernels.select --emit-header kernel_table.hpp
python -m zyfa_ort.kernels.select --table
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from zyfa_ort.kernels.asm.assemble import write_atomically
from zyfa_ort.kernels.errors import KernelError
from zyfa_ort.kernels.select.choice import Choice
from zyfa_ort.kernels.select.header import header
from zyfa_ort.kernels.select.plan import select
from zyfa_ort.kernels.select.problem import Problem, make_problem
from zyfa_ort.kernels.select.table import markdown

NUMBERS = (
    "batch", "q_heads", "kv_heads", "q_len", "new_len", "past_len", "qk_dim", "v_dim", "is_causal", "window_left",
    "sinks", "lse", "present_key", "present_value",
)  # fmt: skip
REALS = ("scale", "softcap")
TEXTS = (
    "dtype", "out_dtype", "precision", "layout", "scales", "causal_alignment", "fp8_edges", "rotation", "mask_dtype",
    "key_mask", "arch", "byte_rounding",
)  # fmt: skip


def read_problem(words: Sequence[str]) -> Problem:
    """From name=value; bias=1x1xSqxSk is the shape of attn_bias. Raises ValueError."""
    values: dict[str, object] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in NUMBERS:
            values[name] = int(value)
        elif name in REALS:
            values[name] = float(value)
        elif name in TEXTS:
            values[name] = value
        elif name == "bias":
            values[name] = tuple(int(size) for size in value.split("x"))
        else:
            known = ", ".join((*NUMBERS, *REALS, *TEXTS, "bias"))
            raise ValueError(f"problem: expected NAME=VALUE with one of {known}, got {word!r}")
    return make_problem(**values)  # type: ignore[arg-type]


def described(choice: Choice) -> str:
    """For people: what runs, without the packed arguments."""
    lines = [choice.why, f"workspace {choice.workspace_bytes} bytes"]
    for step in choice.launches:
        grid = " x ".join(map(str, step.grid))
        lines.append(
            f"{step.row.kernel} of {step.row.code_object}.co: grid {grid}, {step.row.work_items} work-items, "
            f"{step.row.lds_bytes} bytes of LDS"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when there is an answer, 1 with one line on standard error otherwise."""
    parser = argparse.ArgumentParser(
        prog="python -m zyfa_ort.kernels.select", description="which kernels run an attention problem"
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--problem", nargs="*", metavar="NAME=VALUE", help="print the choice for a problem")
    action.add_argument("--emit-header", metavar="OUT.hpp", type=Path, help="write the tables for C++")
    action.add_argument("--table", action="store_true", help="print the kernels and their limits as Markdown")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.emit_header is not None:
            write_atomically(chosen.emit_header, header().encode())
        elif chosen.table:
            print(markdown(), end="")
        else:
            print(described(select(read_problem(chosen.problem))))
    except (KernelError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
