"""The probes on the emulated device: expected answers, other devices noticed, and the claims of the table."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zyfa_ort.kernels import code_objects, emulator
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.asm.fp8_config import Fp8Config
from zyfa_ort.kernels.asm.fp8_prefill import generate
from zyfa_ort.kernels.asm.probe.__main__ import main
from zyfa_ort.kernels.asm.probe.answers import FAMILIES, MAX_ANSWER, Bound, Probe, family_of, one_of, padded
from zyfa_ort.kernels.asm.probe.kernels import KERNELS, RATE_INSTRUCTIONS
from zyfa_ort.kernels.asm.probe.rates import WAVES_PER_SIMD, cycles_per_instruction
from zyfa_ort.kernels.asm.probe.table import BY_NAME, PROBES, valid_families
from zyfa_ort.kernels.asm.probe.text import load, module
from zyfa_ort.kernels.emulator import timing

LARGEST = Fp8Config(head_dim=192)
LARGEST_TRUNCATING = Fp8Config(head_dim=192, conversion="truncate")


@functools.cache
def assembled(text: str) -> bytes:
    return assemble(text, "probe")


def run(probe: Probe, text: str = "", **options: Any) -> str:
    code = assembled(text or module(KERNELS))
    words = np.ascontiguousarray(probe.inputs(), np.uint32)
    out = np.full((probe.outputs, 64), 0xCDCDCDCD, np.uint32)
    result = emulator.launch(code, probe.kernel, 1, 64 * probe.waves, [words, out], **options)
    assert not result.findings, result.table()
    return probe.read(words, out)


@pytest.mark.parametrize("probe", [p for p in PROBES if not p.times], ids=lambda p: p.name)
def test_the_emulated_device_answers_as_expected(probe: Probe) -> None:
    answer = run(probe)
    assert probe.is_expected(answer), answer
    assert not set(probe.meaning(answer).breaks) - {"fp8_prefill_truncate"}
    assert run(probe, order_seed=3) == answer


@pytest.mark.parametrize("accumulation", ["sequential", "pairwise"])
@pytest.mark.parametrize("name", [n for n in BY_NAME if n.startswith(("matrix_error", "matrix_layout"))])
def test_other_orders_of_sums_are_within_the_bounds(name: str, accumulation: str) -> None:
    probe = BY_NAME[name]
    assert probe.is_expected(run(probe, accumulation=accumulation))


def test_sums_in_float32_lose_bits() -> None:
    """2^16 + small - 2^16 one after the other: what float32 keeps, and no more."""
    assert run(BY_NAME["matrix_bits_fp8"], accumulation="sequential") == "23 bits"


# Device that differs: probe, in its kernel's text this, becomes that, answer.
OTHER_DEVICES = [
    ("byte_rounding", "v_cvt_pk_u8_f32 v40, v8, 0, 0", "v_floor_f32_e32 v8, v8\n  v_cvt_pk_u8_f32 v40, v8, 0, 0", "truncate"),
    ("byte_rounding", "v_cvt_pk_u8_f32 v40, v8, 0, 0", "v_ceil_f32_e32 v8, v8\n  v_cvt_pk_u8_f32 v40, v8, 0, 0", "up"),
    ("byte_limits", "v_cvt_pk_u8_f32 v40, v8, 0, 0", "v_cvt_i32_f32_e32 v8, v8\n  v_and_b32_e32 v40, 0xff, v8", "other: "),
    ("byte_place", "v_cvt_pk_u8_f32 v42, v8, 1, v42", "v_cvt_pk_u8_f32 v42, v8, 1, 0", "other: "),
    ("fp8_rounding", "v_cvt_pk_fp8_f32 v40, v8, v9\n", "v_cvt_pk_bf8_f32 v40, v8, v9\n", "other: "),
    ("fp8_rounding", "v_cvt_pk_fp8_f32 v40, v9, v8 op_sel", "v_cvt_pk_fp8_f32 v40, v8, v9 op_sel", "other: "),
    ("fp8_saturation", ".amdhsa_fp16_overflow 1", ".amdhsa_fp16_overflow 0", "NaN"),
    ("fp8_overflow", ".amdhsa_fp16_overflow 0", ".amdhsa_fp16_overflow 1", "saturates, NaN stays"),
    ("fp8_values", "v_cvt_pk_f32_fp8_e32 v[40:41]", "v_cvt_pk_f32_bf8_e32 v[40:41]", "other: "),
    ("exp_error", "v_exp_f32_e32 v40, v8", "v_exp_f32_e32 v40, v8\n  s_nop 0\n  v_mul_f32_e32 v40, 0x3f800008, v40", " ulp"),
    ("matrix_layout_fp8", "v[8:15], v[16:23], v[32:47]", "v[16:23], v[8:15], v[32:47]", "other: "),
    ("matrix_layout_bf16", "v[8:11], v[16:19], v[32:47]", "v[16:19], v[8:11], v[32:47]", "other: "),
    ("matrix_denormals_fp8", "v[8:15], v[16:23], v[32:47]", "v[16:23], v[16:23], v[32:47]", "other: "),
    ("equal_scales", "0, v24, v25", "0, v25, v24", "other: "),
    ("fp8_k_order", "0, v24, v25", "0, v25, v25", "other: "),
    ("scale_range", "0, v24, v25", "0, v25, v24", "other: "),
    ("scale_bytes", "op_sel:[1,0,0]", "op_sel:[0,0,0]", "lowest only"),
    ("permlane32_swap", "v_permlane32_swap_b32 v40, v41", "v_permlane16_swap_b32 v40, v41", "other: "),
    ("permlane16_swap", "v_permlane16_swap_b32 v42, v43", "v_permlane32_swap_b32 v42, v43", "other: "),
    ("max3_nan", "v_max3_f32 v40", "v_maximum3_f32 v40", "NaN wins"),
    ("maximum3_nan", "v_maximum3_f32 v41", "v_max3_f32 v41", "NaN is ignored"),
    ("transpose_b8", "ds_read_b64_tr_b8 v", "ds_read_b64_tr_b16 v", "other: "),
    ("transpose_b16", "ds_read_b64_tr_b16 v", "ds_read_b64_tr_b8 v", "other: "),
    ("dma_offset", "offen offset:64 lds", "offen lds", "other: "),
    ("dma_offset", "s_mov_b32 m0, 256", "s_mov_b32 m0, 192", "memory only"),
    ("dma_out_of_range", "s_mov_b32 s11, 0x00020000", "s_mov_b32 s11, 0x00020000\n  s_movk_i32 s10, 0x1000", "other: "),
    ("dma_half", "s_mov_b64 exec, s[12:13]", "s_nop 0", "other: "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "answer"), OTHER_DEVICES, ids=lambda x: str(x)[:24])
def test_another_device_is_noticed(name: str, old: str, new: str, answer: str) -> None:
    text = module(KERNELS)
    assert old in text
    probe = BY_NAME[name]
    got = run(probe, text.replace(old, new))
    assert answer in got and not probe.is_expected(got), got
    assert len(" ".join(got.split())) <= MAX_ANSWER


def test_a_device_that_truncates_needs_the_other_kernels() -> None:
    answers = {p.name: run(p, byte_rounding="truncate") for p in PROBES if not p.times}
    assert [n for n, a in answers.items() if not BY_NAME[n].is_expected(a)] == ["byte_rounding"]
    assert valid_families(answers) == ("fp8_prefill_truncate", "bf16_prefill", "decode", "quantize")


@pytest.mark.parametrize(
    ("answers", "gone"),
    [
        ({}, set()),
        ({"byte_rounding": "nearest_even"}, {"fp8_prefill_truncate"}),
        ({"byte_rounding": "nearest_away"}, {"fp8_prefill_truncate"}),
        ({"byte_rounding": "truncate"}, {"fp8_prefill"}),
        ({"byte_rounding": "up"}, {"fp8_prefill", "fp8_prefill_truncate"}),
        ({"matrix_bits_bf16": "19 bits"}, {"bf16_prefill"}),
        ({"matrix_bits_bf16": "20 bits"}, set()),
        ({"matrix_error_bf16_small": "65 x 2^-24"}, {"decode"}),
        ({"exp_error": "nan ulp"}, {"fp8_prefill", "fp8_prefill_truncate", "bf16_prefill", "decode"}),
        ({"fp8_k_order": "32 per lane half", "scale_ends": "0 is 0", "byte_nan": "255"}, set()),
        ({"rate_exp_f32": "16.00 cycles"}, set()),
        ({"permlane32_swap": "other"}, set(FAMILIES)),
    ],
)
def test_what_answers_leave_valid(answers: dict[str, str], gone: set[str]) -> None:
    assert set(FAMILIES) - set(valid_families(answers)) == gone


def test_an_unknown_probe_is_an_error() -> None:
    with pytest.raises(KeyError, match="nothing"):
        valid_families({"nothing": "1"})


def test_bounds() -> None:
    bound = Bound(3, 5, "cycles")
    assert str(bound) == "3 to 5 cycles"
    assert [bound.holds(a) for a in ("3 cycles", "5.0 cycles", "5.01 cycles", "4", "4 ulp", "nan cycles", "x")] == [
        True, True, False, False, False, False, False]  # fmt: skip


def test_differences_are_named() -> None:
    found, wanted = np.arange(4), np.array([0, 1, 7, 3])
    assert one_of(found, {"a": wanted, "b": found}) == "b"
    assert one_of(found, {"a": wanted}) == "other: 1 of 4 differ from a, at 2 2 for 7"


# --- what the table claims about our kernels


@functools.cache
def mnemonics() -> dict[str, str]:
    """Per family the instructions of all its code objects that are built here, and of the generated kernels."""
    texts = dict.fromkeys(FAMILIES, "")
    codes = {name: code_objects.load(name) for name in code_objects.names()}
    codes |= {c.name: assemble(generate(c), c.name) for c in (LARGEST, LARGEST_TRUNCATING)}
    for name, code in codes.items():
        family = family_of(name)
        if family is not None:
            for kernel in emulator.kernels(code):
                texts[family] += "\n".join(line.text for line in emulator.disassemble(code, kernel.name))
    return texts


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.name)
def test_users_are_those_whose_code_has_the_instruction(probe: Probe) -> None:
    pattern = {"buffer_load lds": r"buffer_load_dword\w* .* lds$"}.get(
        probe.instruction, rf"\b{probe.instruction}"
    )
    found = {family for family, text in mnemonics().items() if re.search(pattern, text, re.MULTILINE)}
    assert found or not any(mnemonics().values())
    built = {family for family, text in mnemonics().items() if text}
    assert found == set(probe.users) & built
    meanings = (*probe.answers.values(), probe.otherwise)
    assert all(set(m.breaks) <= set(probe.users) for m in meanings)


def test_no_kernel_has_an_offset_on_a_load_into_lds() -> None:
    """What makes `dma_offset` a question without consequences."""
    for text in mnemonics().values():
        assert not re.search(r"buffer_load\w* .*offset:.* lds$", text, re.MULTILINE)


def test_kernels_use_the_lowest_scale_byte() -> None:
    for text in mnemonics().values():
        for line in re.findall(r"v_mfma_scale.*", text):
            assert not re.search(r"op_sel(_hi)?:\[[^\]]*1", line), line


def test_families_of_code_objects() -> None:
    names = (
        "fp8_prefill_d128_none_f32",
        "fp8_prefill_d128_none_f32_truncate",
        "bf16_prefill_general",
        "probe",
    )
    assert [family_of(n) for n in names] == ["fp8_prefill", "fp8_prefill_truncate", "bf16_prefill", None]


# --- the text and its command line; the clock


@pytest.mark.parametrize("probe", [p for p in PROBES if p.bound and p.times], ids=lambda p: p.name)
def test_a_rate_kernel_keeps_the_vector_unit_busy(probe: Probe) -> None:
    """In the timing model a wave waits for nothing but the unit, so that the kernel measures what it says."""
    out = np.zeros((probe.outputs, 64), np.uint32)
    timed = timing.time(assembled(module(KERNELS)), probe.kernel, 1, 64 * probe.waves, [probe.inputs(), out])
    assert not timed.result.findings
    assert probe.bound is not None and probe.bound.holds(
        f"{timed.cycles / (RATE_INSTRUCTIONS * WAVES_PER_SIMD)} {probe.bound.unit}"
    )
    # The emulated clock counts something else; the readings are there, and in order.
    assert cycles_per_instruction(out) > 1
    assert probe.read(probe.inputs(), out).endswith(" cycles")


@pytest.mark.parametrize(("cycles", "answer"), [
    ((8000, 4100), "w and w + 4"), ((4100, 8000), "w and w + 1"), ((4000, 4100), "other"), ((0, 0), "other")])  # fmt: skip
def test_placement_is_read_off_the_clock(cycles: tuple[int, int], answer: str) -> None:
    probe = BY_NAME["placement"]
    readings = np.array([5, 5 + cycles[0], 2**40, 2**40 + cycles[1]], np.uint64).view(np.uint32)
    assert probe.read(probe.inputs(), np.resize(readings, (1, 64))) == answer
    assert not probe.meaning(answer).breaks


def test_the_placement_kernel_makes_wave_0_work_twice() -> None:
    """The emulated clock counts instructions: as many with wave 4 as with wave 1, and both turns are there."""
    probe = BY_NAME["placement"]
    out = np.zeros((1, 64), np.uint32)
    result = emulator.launch(
        assembled(module(KERNELS)), probe.kernel, 1, 64 * probe.waves, [probe.inputs(), out]
    )
    assert not result.findings, result.table()
    clock = out.view(np.uint64).reshape(8, 4).astype(int)
    first, second = clock[:, 1] - clock[:, 0], clock[:, 3] - clock[:, 2]
    assert [wave for wave in range(8) if first[wave] > RATE_INSTRUCTIONS] == [0, 4]
    assert [wave for wave in range(8) if second[wave] > RATE_INSTRUCTIONS] == [0, 1]


def test_words_of_a_probe_are_limited() -> None:
    with pytest.raises(ValueError, match="word 80: a probe has 80 words per lane"):
        load(8, 1, at=80)
    with pytest.raises(ValueError, match="a wave has 64 lanes, got 65"):
        padded([0.0] * 65)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "probe.s"
    assert main([str(target)]) == 0
    assert target.read_text() == module(KERNELS)
    assert main([str(tmp_path / "no" / "probe.s")]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_the_shipped_code_object_is_these_kernels() -> None:
    if "probe" not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load("probe") == assembled(module(KERNELS))
