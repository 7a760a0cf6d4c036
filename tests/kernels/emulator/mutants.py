"""Single changes of an assembly text, each of them a mistake that somebody could make."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

# Changes that the clock alone may forgive: nothing but a finding tells them from the correct kernel.
TIMING = (
    *("wait deleted", "wait weakened", "wait split", "barrier deleted", "nop deleted", "nop shortened"),
    *("moved up", "moved down"),
)
DATA = ("instruction deleted", "LDS offset", "M0 wrong", "address misaligned", "row out of range")
WAITS = ("s_waitcnt", "s_barrier", "s_nop")
JUMPS = ("s_cbranch", "s_branch", "s_endpgm", "s_setprio")
LIMITS = {"vmcnt": 63, "lgkmcnt": 15}


@dataclass(frozen=True)
class Mutant:
    kind: str
    name: str  # kind, instruction and its occurrence in the text
    text: str


def instruction(line: str) -> str:
    """The line without its comment; empty for labels and directives."""
    line = re.split(r";|//", line)[0].strip()
    return "" if line.startswith(".") or line.endswith(":") else line


def _changes(lines: list[str], i: int) -> Iterator[tuple[str, str, list[str], int]]:
    """Kind, what changed, the new lines and how many old ones they replace."""
    here = instruction(lines[i])
    op = here.split()[0]
    after = instruction(lines[i + 1]) if i + 1 < len(lines) else ""
    before = instruction(lines[i - 1]) if i else ""
    if op == "s_waitcnt":
        yield "wait deleted", here, [], 1
        counts = re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", here)
        for counter, count in counts:
            if int(count) < LIMITS[counter]:
                more = here.replace(f"{counter}({count})", f"{counter}({int(count) + 1})")
                yield "wait weakened", f"{here} to {more}", [more], 1
            if len(counts) > 1:
                rest = re.sub(rf"\s*{counter}\(\d+\)", "", here)
                yield "wait split", f"{here} to {rest}", [rest], 1
    elif op == "s_barrier":
        yield "barrier deleted", f"before {after or lines[i + 1].strip()}", [], 1
    elif op == "s_nop":
        states = int(here.split()[1], 0)
        yield "nop deleted", f"{here} before {after}", [], 1
        if states:
            yield "nop shortened", f"{here} before {after}", [f"s_nop {states - 1}"], 1
    elif op.startswith(("v_", "ds_", "global_", "buffer_", "s_load", "s_mov", "s_and_saveexec")):
        yield "instruction deleted", here, [], 1
    if op in WAITS and after and not after.startswith((*JUMPS, *WAITS)):
        yield "moved up", f"{after} over {here}", [after, here], 2
    if op in WAITS and before and not before.startswith((*JUMPS, *WAITS)):
        yield "moved down", f"{before} over {here}", [here, before], -2
    if op.startswith("ds_") and "offset:" in here:
        offset = int(re.search(r"offset:(\d+)", here)[1])  # type: ignore[index]
        for by in (64, 1024):
            yield "LDS offset", f"{here} + {by}", [re.sub(r"offset:\d+", f"offset:{offset + by}", here)], 1
        yield "address misaligned", here, [re.sub(r"offset:\d+", f"offset:{offset + 2}", here)], 1
    if op.startswith("s_") and re.match(r"m0\b", here[len(op) :].strip()):
        yield "M0 wrong", here, [here, "s_xor_b32 m0, m0, 0x400"], 1
    if op.startswith("global_") and "offset" not in here:
        yield "row out of range", here, [here + " offset:-4096"], 1


def mutants(text: str) -> list[Mutant]:
    lines, seen, made = text.split("\n"), Counter[str](), []
    for i, line in enumerate(lines):
        if not instruction(line):
            continue
        for kind, what, new, replaced in _changes(lines, i):
            begin = i if replaced > 0 else i - 1
            changed = [*lines[:begin], *new, *lines[begin + abs(replaced) :]]
            name = f"{kind}: {what}"
            seen[name] += 1
            made.append(Mutant(kind, f"{name} #{seen[name]}", "\n".join(changed)))
    return made
