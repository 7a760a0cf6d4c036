"""DPP, SDWA, lane reads and writes, swaps, compares, accumulation registers, and the coverage of the tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_lanes
from zyfa_ort.kernels.emulator import _native
from zyfa_ort.kernels.errors import EmulationError

LANE = np.arange(64, dtype=np.uint32)


def dpp(control: str) -> Callable[[int], int | None]:
    """Where lane i reads; None past an edge."""
    name, _, text = control.partition(":")
    if name == "quad_perm":
        order = [int(c) for c in text.strip("[]").split(",")]
        return lambda i: (i & ~3) | order[i & 3]
    n = int(text or 0)
    return {
        "row_shl": lambda i: i + n if (i & 15) + n < 16 else None,
        "row_shr": lambda i: i - n if (i & 15) >= n else None,
        "row_ror": lambda i: (i & ~15) | (i - n) & 15,
        "wave_shl": lambda i: i + 1 if i < 63 else None,
        "wave_rol": lambda i: (i + 1) & 63,
        "wave_shr": lambda i: i - 1 if i else None,
        "wave_ror": lambda i: (i - 1) & 63,
        "row_mirror": lambda i: i ^ 15,
        "row_half_mirror": lambda i: i ^ 7,
        "row_bcast": (lambda i: (i & ~15) - 1 if i >= 16 else None)
        if n == 15
        else lambda i: 31 if i >= 32 else None,
        "row_newbcast": lambda i: (i & ~15) | n,
    }[name]


CONTROLS = [
    *(
        "quad_perm:[3,2,1,0]",
        "quad_perm:[0,0,2,2]",
        "row_shl:1",
        "row_shl:15",
        "row_shr:1",
        "row_shr:7",
        "row_ror:1",
    ),
    *("row_ror:9", "wave_shl:1", "wave_rol:1", "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror"),
    *("row_bcast:15", "row_bcast:31", "row_newbcast:0", "row_newbcast:11"),
]


@pytest.mark.parametrize("exec_mask", [(1 << 64) - 1, 0x0F0F_FFFF_1234_FFF7])
@pytest.mark.parametrize(
    "masks",
    ["row_mask:0xf bank_mask:0xf", "row_mask:0xa bank_mask:0x7", "row_mask:0xf bank_mask:0xf bound_ctrl:0"],
)
def test_dpp(masks, exec_mask):
    body = f"  s_mov_b32 s20, {exec_mask & 0xFFFFFFFF:#x}\n  s_mov_b32 s21, {exec_mask >> 32:#x}\n"
    body += (
        "".join(f"  v_mov_b32 v{40 + i}, 0x777\n" for i in range(len(CONTROLS)))
        + "  s_mov_b64 exec, s[20:21]\n  s_nop 4\n"
    )
    body += "".join(
        f"  v_add_u32_dpp v{40 + i}, v10, v11 {control} {masks}\n" for i, control in enumerate(CONTROLS)
    )
    got = run_lanes(body, [LANE + 100, LANE * 1000], len(CONTROLS))
    row_mask, bank_mask, zero = (
        (0xA if "0xa" in masks else 15),
        (7 if "0x7" in masks else 15),
        "bound_ctrl" in masks,
    )
    for row, control in zip(got.tolist(), CONTROLS, strict=True):
        for lane, value in enumerate(row):
            source = dpp(control)(lane)
            valid = source is not None and bool(exec_mask >> source & 1)
            enabled = exec_mask >> lane & 1 and row_mask >> lane // 16 & 1 and bank_mask >> lane // 4 % 4 & 1
            expected = (source + 100 if valid else 0) + lane * 1000 if enabled and (valid or zero) else 0x777
            assert value == expected, f"{control} lane {lane}"


def test_dpp_with_modifiers():
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    got = run_lanes(
        "  s_nop 4\n  v_add_f32_dpp v40, -v10, |v10| row_mirror row_mask:0xf bank_mask:0xf", [x], 1
    )
    np.testing.assert_array_equal(got[0].view(np.float32), -x[np.arange(64) ^ 15] + np.abs(x))


SELECTS = {f"BYTE_{i}": (8 * i, 8) for i in range(4)} | {
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}


def part(value: int, sel: str, extend: bool = False) -> int:
    shift, bits = SELECTS[sel]
    value = value >> shift & ((1 << bits) - 1)
    return value - (1 << bits) if extend and value >> (bits - 1) else value


@pytest.mark.parametrize("unused", ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"])
@pytest.mark.parametrize("dst", SELECTS)
def test_sdwa(dst, unused):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32) for _ in range(2))
    sources = [("BYTE_0", "WORD_1"), ("BYTE_3", "BYTE_2"), ("WORD_0", "DWORD"), ("BYTE_1", "WORD_0")]
    body = "".join(f"  v_mov_b32 v{40 + i}, 0x89abcdef\n" for i in range(4))
    body += "".join(
        f"  v_add_u32_sdwa v{40 + i}, sext(v10), v11 dst_sel:{dst} dst_unused:{unused} src0_sel:{x} src1_sel:{y}\n"
        for i, (x, y) in enumerate(sources)
    )
    got = run_lanes(body, [a, b], 4)
    shift, width = SELECTS[dst]
    for row, (x, y) in zip(got.tolist(), sources, strict=True):
        for p, q, value in zip(a.tolist(), b.tolist(), row, strict=True):
            result = (part(p, x, True) + part(q, y)) & ((1 << width) - 1)
            old = 0x89ABCDEF & ~(((1 << width) - 1) << shift) if unused == "UNUSED_PRESERVE" else 0
            if unused == "UNUSED_SEXT" and result >> (width - 1):
                result -= 1 << width
            assert value == old | (result << shift) & 0xFFFFFFFF


def test_sdwa_of_floats():
    halves = np.random.default_rng(2).uniform(-4, 4, 128).astype(np.float16)
    packed = halves.view(np.uint32)
    body = """
  v_mov_b32 v40, 0
  v_add_f16_sdwa v40, -v10, |v10| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0
  v_cvt_f32_f16_sdwa v41, v10 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1
  v_cmp_gt_f16_sdwa vcc, v10, v10 src0_sel:WORD_1 src1_sel:WORD_0
  s_nop 1
  v_cndmask_b32 v42, 0, 1, vcc
"""
    got = run_lanes(body, [packed], 3)
    low, high = halves[0::2], halves[1::2]
    np.testing.assert_array_equal((got[0] >> 16).astype(np.uint16).view(np.float16), -high + np.abs(low))
    np.testing.assert_array_equal(got[1].view(np.float32), high.astype(np.float32))
    np.testing.assert_array_equal(got[2], high > low)


def test_lane_reads_and_writes():
    body = """
  v_readfirstlane_b32 s20, v10
  v_readlane_b32 s21, v10, 63
  s_mov_b32 s22, 69
  v_readlane_b32 s23, v10, s22
  s_mov_b64 exec, 0xff00
  s_nop 4
  v_readfirstlane_b32 s24, v10
  s_mov_b64 exec, 0
  s_nop 4
  v_readfirstlane_b32 s25, v10
  s_mov_b64 exec, -1
  v_mov_b32 v40, 0
  s_mov_b64 exec, 1
  s_nop 4
  v_writelane_b32 v40, s20, 7
  v_writelane_b32 v40, 33, s22
  s_mov_b64 exec, -1
  v_mov_b32 v41, s20
  v_mov_b32 v42, s21
  v_mov_b32 v43, s23
  v_mov_b32 v44, s24
  v_mov_b32 v45, s25
"""
    got = run_lanes(body, [LANE + 500], 6)
    expected = np.zeros(64, np.uint32)
    expected[7], expected[5] = 500, 33
    np.testing.assert_array_equal(got[0], expected)
    assert got[1:, 0].tolist() == [500, 563, 505, 508, 500]


@pytest.mark.parametrize("half", [16, 32])
def test_permlane_swaps(half):
    a, b = LANE + 100, LANE + 200
    body = f"  v_mov_b32 v40, v10\n  v_mov_b32 v41, v11\n  s_nop 2\n  v_permlane{half}_swap_b32 v40, v41\n"
    got = run_lanes(body, [a, b], 2)
    upper = (LANE // half) % 2 == 1
    np.testing.assert_array_equal(got[0], np.where(upper, np.roll(b, half), a))
    np.testing.assert_array_equal(got[1], np.where(upper, b, np.roll(a, -half)))
    with pytest.raises(EmulationError, match="lanes off"):
        run_lanes(f"  s_mov_b64 exec, 1\n  s_nop 4\n  v_permlane{half}_swap_b32 v10, v11", [a, b], 1)


def test_moves_and_register_files():
    body = """
  v_mov_b64 v[40:41], v[10:11]
  v_mov_b32 v42, v10
  v_mov_b32 v43, v11
  v_swap_b32 v42, v43
  v_accvgpr_write_b32 a3, v10
  s_nop 4
  v_accvgpr_mov_b32 a4, a3
  v_accvgpr_read_b32 v44, a4
  v_accvgpr_write_b32 a5, 17
  v_accvgpr_read_b32 v45, a5
  v_pk_mov_b32 v[46:47], v[10:11], v[12:13] op_sel:[1,0]
"""
    rows = [LANE + 100 * i for i in range(4)]
    got = run_lanes(body, rows, 8)
    for row, expected in zip(
        got, (rows[0], rows[1], rows[1], rows[0], rows[0], LANE * 0 + 17, rows[1], rows[2]), strict=True
    ):
        np.testing.assert_array_equal(row, expected)


# ---- compares -----------------------------------------------------------------------------------------------------------

FLOAT_RELATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "f": lambda a, b: a != a & False,
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": np.greater_equal,
    "o": lambda a, b: (a == a) & (b == b),
    "u": lambda a, b: (a != a) | (b != b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: ~(a < b),
    "tru": lambda a, b: (a == a) | True,
}
FLOAT_RELATIONS["f"] = lambda a, b: np.zeros(a.shape, bool)
INT_RELATIONS = {
    "f": lambda a, b: np.zeros(a.shape, bool),
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "t": lambda a, b: np.ones(a.shape, bool),
}


def masks_of(codes: list[str], inputs: list[np.ndarray], exec_mask: int = (1 << 64) - 1) -> np.ndarray:
    """Runs compares and gives each one's mask as booleans per lane."""
    body = f"  s_mov_b32 s22, {exec_mask & 0xFFFFFFFF:#x}\n  s_mov_b32 s23, {exec_mask >> 32:#x}\n"
    for i, code in enumerate(codes):
        body += f"  s_mov_b64 exec, s[22:23]\n  {code}\n  s_mov_b64 exec, -1\n  s_nop 4\n"
        body += f"  v_cndmask_b32 v{40 + i}, 0, 1, s[20:21]\n"
    return run_lanes(body, inputs, len(codes)).astype(bool)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_float_compares(width):
    values = np.array([0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan])
    a, b = (m.ravel() for m in np.meshgrid(values, values))
    dtype = {16: np.float16, 32: np.float32, 64: np.float64}[width]
    x, y = a.astype(dtype), b.astype(dtype)
    if width == 64:
        inputs = [
            np.stack(
                [v.view(np.uint64).astype(np.uint32), (v.view(np.uint64) >> np.uint64(32)).astype(np.uint32)]
            )
            for v in (x, y)
        ]
        operands = "v[10:11], v[12:13]"
    else:
        inputs = [v.view(np.uint16).astype(np.uint32) if width == 16 else v.view(np.uint32) for v in (x, y)]
        operands = "v10, v11"
    codes = [f"v_cmp_{r}_f{width} s[20:21], {operands}" for r in FLOAT_RELATIONS]
    got = masks_of(codes, inputs, 0xFFFF_FFFF_0FFF_FFFE)
    off = (LANE == 0) | ((LANE >= 28) & (LANE < 32))
    for row, relation in zip(got, FLOAT_RELATIONS.values(), strict=True):
        np.testing.assert_array_equal(row, relation(x, y) & ~off)


@pytest.mark.parametrize("kind", ["i16", "u16", "i32", "u32", "i64", "u64"])
def test_integer_compares(kind):
    bits = int(kind[1:])
    corners = [0, 1, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1, 5, (1 << bits) - 2, 7]
    a, b = (m.ravel() for m in np.meshgrid(np.array(corners, np.uint64), np.array(corners, np.uint64)))
    view = np.dtype(f"{'int' if kind[0] == 'i' else 'uint'}{bits}")
    x, y = (v.astype(f"uint{bits}").view(view) for v in (a, b))
    if bits == 64:
        inputs = [np.stack([v.astype(np.uint32), (v >> np.uint64(32)).astype(np.uint32)]) for v in (a, b)]
        operands = "v[10:11], v[12:13]"
    else:
        # What stands above the 16 bits does not count.
        inputs = [
            (v | (np.uint64(0xABCD0000) if bits == 16 else np.uint64(0))).astype(np.uint32) for v in (a, b)
        ]
        operands = "v10, v11"
    got = masks_of([f"v_cmp_{r}_{kind} s[20:21], {operands}" for r in INT_RELATIONS], inputs)
    for row, relation in zip(got, INT_RELATIONS.values(), strict=True):
        np.testing.assert_array_equal(row, relation(x, y))


def test_compare_writes_exec():
    body = """
  v_mov_b32 v40, 5
  s_mov_b64 exec, 0xffff
  v_cmpx_lt_u32 vcc, v10, v11
  v_mov_b32 v40, 6
  s_mov_b64 exec, -1
  s_nop 4
  v_cndmask_b32 v41, 0, 1, vcc
"""
    got = run_lanes(body, [LANE % 8, np.full(64, 4, np.uint32)], 2)
    expected = (LANE < 16) & (LANE % 8 < 4)
    np.testing.assert_array_equal(got[0], np.where(expected, 6, 5))
    np.testing.assert_array_equal(got[1], expected)


def test_classes():
    values = np.array(
        [
            0x7F800001,
            0x7FC00000,
            0xFF800000,
            0xBF800000,
            0x80000001,
            0x80000000,
            0,
            1,
            0x3F800000,
            0x7F800000,
        ],
        np.uint32,
    )
    a = np.resize(values, 64)
    codes = [f"v_cmp_class_f32 s[20:21], v10, v{11 + i}" for i in range(10)]
    got = masks_of(codes, [a, *[np.full(64, 1 << i, np.uint32) for i in range(10)]])
    for bit in range(10):
        np.testing.assert_array_equal(got[bit], bit == LANE % 10)


def test_select_takes_modifiers():
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    got = run_lanes("  s_mov_b64 s[20:21], 0xff\n  v_cndmask_b32 v40, -v10, |v10|, s[20:21]", [x], 1)
    np.testing.assert_array_equal(got[0].view(np.float32), np.where(LANE < 8, np.abs(x), -x))


# ---- what is missing ------------------------------------------------------------------------------------------------------

MISSING = {
    # Traps, debugging, graphics and performance counters: nothing a compute kernel could observe here.
    *(
        "s_rfe_b64",
        "s_rfe_restore_b64",
        "s_cbranch_join",
        "s_cbranch_g_fork",
        "s_cbranch_i_fork",
        "s_setkill",
    ),
    *("s_sendmsg", "s_sendmsghalt", "s_endpgm_saved", "s_endpgm_ordered_ps_done", "s_set_valu_coexec_mode"),
    # Indexed register access changes how every following instruction names its registers.
    *("s_set_gpr_idx_idx", "s_set_gpr_idx_on", "s_set_gpr_idx_off", "s_set_gpr_idx_mode"),
    *("v_exp_legacy_f32", "v_log_legacy_f32", "v_trig_preop_f64", "v_screen_partition_4se_b32"),
}


def test_every_other_instruction_runs():
    missing = {name for name in _native.unimplemented() if name.startswith(("s_", "v_"))}
    prefixes = (
        "s_load",
        "s_buffer",
        "s_store",
        "s_scratch",
        "s_atomic",
        "s_atc",
        "s_dcache",
        "s_mem",
        "s_scr",
        "v_mfma",
        "v_smfmac",
    )
    assert {name for name in missing if not name.startswith(prefixes)} == MISSING
