"""The BF16 prefill sources compile for gfx942 (MI300X) too; nothing here runs its code."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels.hip.prefill_launch import GENERAL, PLAIN
from zyfa_ort.kernels.asm.assemble import HIP
from zyfa_ort.kernels.asm.toolchain import run, toolchain


def assembly(source: Path, folder: Path) -> str:
    options = [option.replace("gfx950", "gfx942") for option in HIP]
    target = folder / "kernel.s"
    outcome = run([*toolchain().clang, *options, str(source), "-o", str(target)], folder, source.name)
    assert outcome.returncode == 0, outcome.stderr
    return target.read_text()


@pytest.mark.parametrize("source", [PLAIN, pytest.param(GENERAL, marks=pytest.mark.slow)])
def test_its_own_instructions_are_used(source, tmp_path):
    text = assembly(source, tmp_path)
    assert "amdgcn-amd-amdhsa--gfx942" in text
    assert "v_mfma_f32_32x32x8_bf16" in text
    assert "v_mfma_f32_32x32x16_bf16" not in text
