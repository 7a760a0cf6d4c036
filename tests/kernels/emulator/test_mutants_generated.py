"""Mistakes of timing in kernels that a generator and a compiler made: all are found, but for those that are none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kernels.asm.fp8_launch import make_launch
from kernels.emulator.mutants import DATA, Mutant, mutants
from zyfa_ort.kernels.asm.assemble import assemble, hip_assembly
from zyfa_ort.kernels.asm.fp8_config import Fp8Config
from zyfa_ort.kernels.asm.fp8_prefill import generate
from zyfa_ort.kernels.emulator import launch
from zyfa_ort.kernels.errors import EmulationError

SELFCHECK = Path(__file__).parents[3] / "kernels" / "hip" / "selfcheck.hip"
CONFIG = Fp8Config()
TAKEN_AWAY = (
    "wait deleted",
    "wait weakened",
    "wait split",
    "barrier deleted",
    "nop deleted",
    "nop shortened",
)
# Fetches beyond the last tile, for which the end of the loop waits, are read by nobody; values are fetched after keys and
# used one tile later, so that one fetch more may be out.
HARMLESS = re.compile(
    r"wait (deleted|weakened): s_waitcnt vmcnt\(0\)|wait weakened: s_waitcnt vmcnt\(\d+\) to .* #2$"
)
# A wait right before one that waits for more of the same.
COVERED = re.compile(r"^  s_waitcnt (vmcnt|lgkmcnt)\(\d+\)\n(?=  s_waitcnt \1\()", re.MULTILINE)

# Rules and output of a code object in one order.
Run = Callable[[bytes, int], "tuple[set[str], bytes]"]


def launched(
    code: bytes, kernel: str, grid: object, block: object, args: list[object], **options: object
) -> set[str]:
    try:
        result = launch(
            code, kernel, grid, block, args, report_only=True, max_instructions=100_000, **options
        )  # type: ignore[arg-type]
    except EmulationError:
        return {"failed"}
    return {finding.rule for finding in result.findings}


def run_fp8(code: bytes, seed: int, causal: int = 0, threads: int = 1) -> tuple[set[str], bytes]:
    rng = np.random.default_rng(0)
    tensors = [rng.standard_normal((1, 384, 1, 128)).astype(ml_dtypes.float8_e4m3fn) for _ in range(3)]
    one = np.ones(1, np.float32)
    scales = {"q_scale": one, "k_scale": one, "v_scale": one}
    made = make_launch(CONFIG, *tensors, **scales, is_causal=causal, sinks=one)
    found = launched(
        code, CONFIG.name, made.grid, made.block, made.args, order_seed=seed, threads=threads
    )  # fmt: skip
    assert made.lse is not None
    return found, made.output.tobytes() + made.lse.tobytes()


def run_gemm(code: bytes, seed: int) -> tuple[set[str], bytes]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 72)).astype(ml_dtypes.bfloat16) for rows in (70, 66))
    out = np.full((70, 66), 7, np.float32)
    sizes = [np.uint32(n) for n in (70, 66, 72)]
    return launched(code, "gemm_bf16", (2, 2), 256, [a, b, out, *sizes], order_seed=seed), out.tobytes()


def run_reduction(code: bytes, seed: int) -> tuple[set[str], bytes]:
    values, out = np.random.default_rng(0).standard_normal(700).astype(np.float32), np.full(3, 7, np.float32)
    found = launched(
        code, "lds_reduction", 3, 256, [values, out, np.uint32(700)], order_seed=seed, dynamic_lds=1024
    )
    return found, out.tobytes()


def missed(run: Run, chosen: list[Mutant], whole: Callable[[str], str], correct: bytes) -> list[str]:
    made = []
    for mutant in chosen:
        code = assemble(whole(mutant.text))
        outcomes = [run(code, seed) for seed in (0, 5)]
        told = any(found for found, _ in outcomes)
        told |= mutant.kind in DATA and all(output != correct for _, output in outcomes)
        if not told:
            made.append(mutant.name)
    return made


@pytest.mark.slow
def test_every_wait_barrier_and_wait_state_of_the_fp8_kernel_is_needed() -> None:
    text = COVERED.sub("", generate(CONFIG))
    end = text.index("s_endpgm")
    chosen = [mutant for mutant in mutants(text[:end]) if mutant.kind in TAKEN_AWAY]
    assert len(chosen) > 40
    not_found = missed(run_fp8, chosen, lambda body: body + text[end:], b"")
    assert [name for name in not_found if not HARMLESS.match(name)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "run"), [("gemm_bf16", run_gemm), ("lds_reduction", run_reduction)])
def test_mistakes_in_compiled_kernels_are_found(name: str, run: Run) -> None:
    text = hip_assembly(SELFCHECK)
    begin = text.index(f"\n{name}:") + 1
    end = text.index(".Lfunc_end", begin)
    found, correct = run(assemble(text), 0)
    assert found == set()
    kinds = (*TAKEN_AWAY, "LDS offset", "address misaligned", "row out of range")
    chosen = [mutant for mutant in mutants(text[begin:end]) if mutant.kind in kinds]
    assert missed(run, chosen, lambda body: text[:begin] + body + text[end:], correct) == []


@pytest.mark.parametrize("causal", [0, 1])
def test_the_fp8_kernel_gives_the_same_bits_in_every_order(causal: int) -> None:
    code = assemble(generate(CONFIG))
    outcomes = [run_fp8(code, seed, causal, threads=1 + seed % 2) for seed in range(21)]
    assert all(found == set() for found, _ in outcomes)
    assert len({output for _, output in outcomes}) == 1
