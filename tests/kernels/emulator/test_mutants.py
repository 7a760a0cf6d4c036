"""Every single mistake in a correct kernel is found: by a finding or a failed launch where the clock could hide it, and by
these or another result where it changes what is computed."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.mutant_kernels import SUBJECTS, inputs
from kernels.emulator.mutants import DATA, TIMING, Mutant, mutants
from kernels.emulator.wave_kernel import kernel_text
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.emulator import launch
from zyfa_ort.kernels.errors import EmulationError

SEEDS = (0, 3)
# Rules that warn because AMD ships code below the stricter source; a mistake of ours shows in them all the same.
WARNINGS = {"G6", "G12"}
HARMLESS = {
    "pipeline": {
        "instruction deleted: v_and_b32 v0, 0x3ff, v0 #1": "a workgroup in x alone: the other ids are 0",
        "moved up: s_mov_b32 m0, s21 over s_barrier #1": "M0 is the wave's own",
        "moved down: s_xor_b32 s21, s21, 0x1000 over s_barrier #1": "s21 is the wave's own",
        "moved down: v_xor_b32 v6, 0x1000, v6 over s_waitcnt lgkmcnt(2) #1": "addresses were read at issue",
        "moved down: v_mfma_f32_32x32x16_bf16 v[40:55], v[8:11], v[12:15], v[40:55] over s_waitcnt lgkmcnt(0) #1":
            "waits for more than it needs",
    },
    "exchange": {
        "instruction deleted: v_and_b32 v0, 0x3ff, v0 #1": "a workgroup in x alone: the other ids are 0",
        "instruction deleted: v_mov_b32 v25, 0 #1": "nobody reads it: it is there to come too early behind the store",
        "moved down: v_xor_b32 v5, 0xfc, v4 over s_waitcnt lgkmcnt(0) #1": "touches nothing that is loaded",
        "moved down: ds_write_b32 v2, v10 offset:0 over s_waitcnt vmcnt(1) #1": "waits for more than it needs",
        "moved down: v_add_f32 v13, s25, v13 over s_barrier #1": "v13 is the wave's own",
        "moved down: v_add_f32 v17, v14, v13 over s_waitcnt lgkmcnt(1) #1": "waits for more than it needs",
        "moved down: v_add_f32 v18, v15, v13 over s_waitcnt lgkmcnt(0) #1": "waits for more than it needs",
        "moved down: v_log_f32 v20, v19 over s_waitcnt lgkmcnt(0) #1": "touches nothing that is loaded",
        "moved down: v_mov_b32_dpp v25, v24 row_ror:3 row_mask:0xf bank_mask:0xf over s_waitcnt lgkmcnt(0) #1":
            "touches nothing that is loaded",
    },
}  # fmt: skip


def run(name: str, text: str, seed: int) -> tuple[list[tuple[str, str]], bytes]:
    """Rules and severities found, and the output; a failed launch is ("failed", "error")."""
    subject = SUBJECTS[name]
    output = np.full(subject.outputs, 0xCDCDCDCD, np.uint32)
    code = assemble(kernel_text(text, lds=subject.lds, vgprs=128, accum=128))
    arguments = [inputs(subject), output]
    try:
        result = launch(
            code, "kernel", 1, 64 * subject.waves, arguments, report_only=True, order_seed=seed,
            max_instructions=10_000,
        )  # fmt: skip
    except EmulationError:
        return [("failed", "error")], b""
    return [(f.rule, f.severity) for f in result.findings], output.tobytes()


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_kernels_are_correct_and_every_output_depends_on_them(name: str) -> None:
    outcomes = [run(name, SUBJECTS[name].body, seed) for seed in (0, 1, 2, 3, 4, 5)]
    assert [found for found, _ in outcomes] == [[]] * 6
    assert len({output for _, output in outcomes}) == 1
    values = np.frombuffer(outcomes[0][1], np.uint32)
    assert 0xCDCDCDCD not in values
    assert len(np.unique(values)) > values.size // 2


def missed(name: str, chosen: list[Mutant]) -> list[str]:
    """Mutants that pass for correct in some order, without being known as harmless, and harmless ones that do not."""
    correct = run(name, SUBJECTS[name].body, 0)[1]
    made = []
    for mutant in chosen:
        outcomes = [run(name, mutant.text, seed) for seed in SEEDS]
        found = all(rules for rules, _ in outcomes) and any(
            severity == "error" or rule in WARNINGS for rules, _ in outcomes for rule, severity in rules
        )
        told = found or (mutant.kind in DATA and all(output != correct for _, output in outcomes))
        if told == (mutant.name in HARMLESS[name]):
            made.append(f"{mutant.name}: {[rules for rules, _ in outcomes]}")
    return made


def sample(name: str, part: int, parts: int) -> list[Mutant]:
    return mutants(SUBJECTS[name].body)[part::parts]


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_sample_of_mistakes_is_found(name: str) -> None:
    assert missed(name, sample(name, 0, 4)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", [1, 2, 3])
@pytest.mark.parametrize("name", SUBJECTS)
def test_all_other_mistakes_are_found(name: str, part: int) -> None:
    assert missed(name, sample(name, part, 4)) == []


def test_every_harmless_change_exists() -> None:
    for name, harmless in HARMLESS.items():
        assert harmless.keys() <= {mutant.name for mutant in sample(name, 0, 1)}


def test_kinds_of_mistakes() -> None:
    made = {mutant.kind for name in SUBJECTS for mutant in sample(name, 0, 1)}
    assert made == {*TIMING, *DATA}
