"""The schedule of the FP8 prefill kernel: golden tables, the rules a table must keep, the budget, the command line.

A change of the schedule shows in the golden files; `python -m zyfa_ort.kernels.asm --schedule --config NAME > golden/NAME.txt`
and `--emit golden/NAME.s` renew them, to be read before they are committed.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.__main__ import main
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.asm.fp8_config import PREFETCH, STAGES, Fp8Config, by_name, shipped
from zyfa_ort.kernels.asm.fp8_matrix import spread
from zyfa_ort.kernels.asm.fp8_prefill import build, generate
from zyfa_ort.kernels.asm.fp8_report import budget, schedule
from zyfa_ort.kernels.asm.fp8_schedule import SLOTS_128, SLOTS_192, Slot, check
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import EXEC, Register

GOLDEN = Path(__file__).parent / "golden"
D128, D192 = Fp8Config(), Fp8Config(head_dim=192)


@pytest.mark.parametrize("config", [D128, D192], ids=lambda c: c.name)
def test_the_schedule_is_the_golden_one(config: Fp8Config) -> None:
    assert schedule(config) == (GOLDEN / f"{config.name}.txt").read_text(encoding="utf-8")


def test_the_assembly_is_the_golden_one() -> None:
    (golden,) = GOLDEN.glob("*.s")
    assert generate(by_name(golden.stem)) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("config", "matrix", "useful"), [(D128, 576, 512), (D192, 704, 640)])
def test_budget(config: Fp8Config, matrix: int, useful: int) -> None:
    """Nothing but the matrix pipe limits a phase: 88.9 % and 90.9 % of the peak, the rest is the row sums."""
    found = budget(build(config))
    assert (found.matrix_cycles, found.useful_matrix_cycles) == (matrix, useful)
    assert found.phase == matrix
    assert max(found.product_issue, found.vector_issue, found.vector_unit) < 0.85 * matrix


def test_two_waves_share_a_simd() -> None:
    for config in (D128, D192):  # lean edge tiles and other outputs take no more registers
        kernel = build(config)
        assert kernel.limits.total_vgprs <= 256 and kernel.limits.lds_bytes <= 160 * 1024
    assert STAGES >= PREFETCH + 2


def moved(slots: tuple[Slot, ...], load: str, row: int) -> tuple[Slot, ...]:
    without = [replace(s, loads=tuple(x for x in s.loads if x != load)) for s in slots]
    without[row] = replace(without[row], loads=(*without[row].loads, load))
    return tuple(without)


@pytest.mark.parametrize(
    ("config", "slots", "message"),
    [
        (D128, SLOTS_128[:-1], "expected 9 products, got"),
        (D128, moved(SLOTS_128, "key 1", 1), "key 1 in row 1, but its registers are read in"),
        (D192, moved(SLOTS_192, "key 4", 0), "key 4 in row 0, but its registers are read in"),
        (D192, moved(SLOTS_192, "key 5", 4), "key 5 in row 4, but its registers are read in"),
        (D128, moved(SLOTS_128, "value 1", 5), "value 1 is loaded in row 5, too late"),
        (D128, moved(SLOTS_128, "key 3", 5), "key 3 is loaded in row 5, but the addresses"),
    ],
)
def test_a_schedule_that_breaks_a_rule_is_refused(
    config: Fp8Config, slots: tuple[Slot, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check(slots, config)


def test_scalar_work_is_cut_where_nothing_is_carried() -> None:
    """Neither between a carry and its use, nor while lanes are switched off."""
    p, a, b = Program("k"), Register("s", 8, 1), Register("s", 9, 1)
    p.s_add_u32(a, a, b)
    p.s_addc_u32(b, b, 0)
    p.s_mov_b32(EXEC[1], 0)
    p.s_mov_b32(a, 0)
    p.s_mov_b32(EXEC[1], -1)
    p.s_mov_b32(b, 0)
    assert [len(piece) for piece in spread(p.items, 6)] == [0 + 2, 0, 3, 0, 0, 1]


def test_config_names_and_refusals() -> None:
    assert len({config.name for config in shipped()}) == 24
    with pytest.raises(ValueError, match=r"head_dim must be one of \(128, 192\), got 64"):
        Fp8Config(head_dim=64)
    with pytest.raises(ValueError, match="config 'nothing': expected one of fp8_prefill_d128_hilo_bf16"):
        by_name("nothing")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "kernel.s"
    golden = GOLDEN / "fp8_prefill_d128_none_f32.s"
    assert main(["--emit", str(target), "--config", golden.stem]) == 0
    assert target.read_bytes() == golden.read_bytes()
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == [config.name for config in shipped()]
    assert main(["--schedule", "--config", "nothing"]) == 1
    assert capsys.readouterr().err.startswith("error: config 'nothing': expected one of")
    assert main(["--emit", str(tmp_path / "no" / "kernel.s")]) == 1


def test_the_module_runs() -> None:
    command = [sys.executable, "-m", "zyfa_ort.kernels.asm", "--schedule"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    assert shown.stdout == (GOLDEN / f"{D128.name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("config", shipped(), ids=lambda c: c.name)
def test_the_shipped_code_object_is_this_kernel(config: Fp8Config) -> None:
    if config.name not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load(config.name) == assemble(generate(config), config.name)
