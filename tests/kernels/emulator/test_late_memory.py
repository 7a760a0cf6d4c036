"""Data on its way: what is read or overwritten before its s_waitcnt, and what is never written at all."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_kernel
from zyfa_ort.kernels.emulator import Finding, Result
from zyfa_ort.kernels.errors import EmulationError

START = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  s_mov_b32 m0, 0
  s_waitcnt lgkmcnt(0)
  ds_write_b32 v1, v2
  ds_write_b32 v1, v2 offset:256
  s_waitcnt lgkmcnt(0)
"""
END = "\n  s_waitcnt vmcnt(0) lgkmcnt(0)\n"


def run(body: str, *, block: int = 64, **settings: object) -> Result:
    data = np.zeros(4096, np.uint32)
    return run_kernel(START + body + END, [data], block=(block,), report_only=True, lds=8192, **settings)  # type: ignore[arg-type]


def rules(body: str, **settings: object) -> list[str]:
    return sorted({f.rule for f in run(body, **settings).findings})


def only(body: str) -> Finding:
    (finding,) = run(body).findings
    return finding


VM = "  global_load_dword v10, v1, s[4:5]\n"
VM2 = "  global_load_dword v11, v1, s[4:5] offset:256\n"
DS = "  ds_read_b32 v12, v1\n"
DS2 = "  ds_read_b32 v13, v1 offset:256\n"
SM = "  s_load_dword s20, s[4:5], 0x0\n"

# Body, rule that must be found (None: clean).
CASES = {
    "load read at once": (VM + "  v_mov_b32 v20, v10", "G17"),
    "load waited for": (VM + "  s_waitcnt vmcnt(0)\n  v_mov_b32 v20, v10", None),
    "wait on the wrong counter": (VM + "  s_waitcnt lgkmcnt(0)\n  v_mov_b32 v20, v10", "G17"),
    "older of two": (VM + VM2 + "  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v10", None),
    "newer of two": (VM + VM2 + "  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v11", "G17"),
    "a store counts": (VM + "  global_store_dword v1, v2, s[4:5]\n  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v10", None),
    "an LDS-DMA load counts": (
        VM + "  global_load_lds_dword v1, s[4:5] offset:512\n  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v10",
        None,
    ),
    "atomic with return": ("  global_atomic_add v10, v1, v2, s[4:5] sc0\n  v_mov_b32 v20, v10", "G17"),
    "overwritten by a vector instruction": (VM + "  v_mov_b32 v10, 0", "G17"),
    "overwritten by a later load of the kind": (VM + VM + "  s_waitcnt vmcnt(0)\n  v_mov_b32 v20, v10", None),
    "the later load still out": (VM + VM + "  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v10", "G17"),
    "overwritten by a load of another kind": (VM + "  ds_read_b32 v10, v1\n", "G17"),
    "store data overwritten after issue": ("  global_store_dword v1, v2, s[4:5]\n  v_mov_b32 v2, 1", None),
    "stored before it came": (VM + "  global_store_dword v1, v10, s[4:5] offset:4", "G17"),
    "used as address": (VM + "  global_load_dword v11, v10, s[4:5]", "G17"),
    "accumulation register": ("  global_load_dword a0, v1, s[4:5]\n  v_accvgpr_read_b32 v20, a0", "G17"),
    "LDS read": (DS + "  v_mov_b32 v20, v12", "G17"),
    "LDS read waited for": (DS + DS2 + "  s_waitcnt lgkmcnt(1)\n  v_mov_b32 v20, v12", None),
    "newer LDS read": (DS + DS2 + "  s_waitcnt lgkmcnt(1)\n  v_mov_b32 v20, v13", "G17"),
    "an LDS write counts": (DS + "  ds_write_b32 v1, v2\n  s_waitcnt lgkmcnt(1)\n  v_mov_b32 v20, v12", None),
    "lane exchange": ("  ds_bpermute_b32 v12, v1, v2\n  v_mov_b32 v20, v12", "G17"),
    "halves in order": ("  ds_read_u16_d16 v2, v1\n  ds_read_u16_d16_hi v2, v1\n  s_waitcnt lgkmcnt(0)\n  v_mov_b32 v20, v2",
                        None),
    "scalar load": (SM + "  s_mov_b32 s21, s20", "G17"),
    "scalar load waited for": (SM + "  s_waitcnt lgkmcnt(0)\n  s_mov_b32 s21, s20", None),
    "scalar load used by a vector instruction": (SM + "  v_mov_b32 v20, s20", "G17"),
    "scalar load overwritten": (SM + "  s_mov_b32 s20, 0", "G17"),
    "two scalar loads into one register": (SM + SM, "G17"),
    "scalar loads have no order": (SM + "  s_load_dword s22, s[4:5], 0x4\n  s_waitcnt lgkmcnt(1)\n  s_mov_b32 s21, s20",
                                   "G16"),
    "a scalar load after an LDS read": (DS + SM + "  s_waitcnt lgkmcnt(1)\n  v_mov_b32 v20, v12", "G17"),
    "two LDS reads and a scalar load": (DS + DS2 + SM + "  s_waitcnt lgkmcnt(1)\n  v_mov_b32 v20, v12", None),
    "clock": ("  s_memtime s[20:21]\n  s_mov_b32 s22, s20", "G17"),
    "flat to memory": (
        "  v_mov_b32 v5, s5\n  v_add_u32 v4, s4, v1\n  flat_load_dword v10, v[4:5]\n"
        "  s_waitcnt vmcnt(0)\n  v_mov_b32 v20, v10",
        None,
    ),
    "flat to LDS needs both counters": (
        "  v_mov_b32 v5, 0x10000\n  v_mov_b32 v4, v1\n  flat_load_dword v10, v[4:5]\n"
        "  s_waitcnt lgkmcnt(0)\n  v_mov_b32 v20, v10",
        "G17",
    ),
    "flat to LDS with both": (
        "  v_mov_b32 v5, 0x10000\n  v_mov_b32 v4, v1\n  flat_load_dword v10, v[4:5]\n"
        "  s_waitcnt vmcnt(0) lgkmcnt(0)\n  v_mov_b32 v20, v10",
        None,
    ),
    "flat between counted loads": (
        VM + "  v_mov_b32 v5, s5\n  v_add_u32 v4, s4, v1\n  flat_load_dword v11, v[4:5]\n"
        "  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v10",
        "G17",
    ),
    "flat and a newer load": (
        VM + "  v_mov_b32 v5, s5\n  v_add_u32 v4, s4, v1\n  flat_load_dword v11, v[4:5]\n" + VM2.replace("v11", "v12")
        + "  s_waitcnt vmcnt(1)\n  v_mov_b32 v20, v10",
        None,
    ),
    "flat to LDS between counted reads": (
        DS + "  v_mov_b32 v5, 0x10000\n  v_mov_b32 v4, v1\n  flat_load_dword v10, v[4:5]\n"
        "  s_waitcnt lgkmcnt(1)\n  v_mov_b32 v20, v12",
        "G17",
    ),
    "two kinds of loads in lanes of their own, one not waited for": (
        "  s_mov_b64 exec, 1\n" + VM + "  s_mov_b64 exec, 2\n  ds_read_b32 v10, v1\n  s_mov_b64 exec, 3\n"
        "  s_waitcnt lgkmcnt(0)\n  v_mov_b32 v20, v10\n  s_mov_b64 exec, -1",
        "G17",
    ),
    "two kinds of loads in lanes of their own, the other not waited for": (
        "  s_mov_b64 exec, 1\n" + VM + "  s_mov_b64 exec, 2\n  ds_read_b32 v10, v1\n  s_mov_b64 exec, 3\n"
        "  s_waitcnt vmcnt(0)\n  v_mov_b32 v20, v10\n  s_mov_b64 exec, -1",
        "G17",
    ),
    "two kinds of loads in lanes of their own, both waited for": (
        "  s_mov_b64 exec, 1\n" + VM + "  s_mov_b64 exec, 2\n  ds_read_b32 v10, v1\n  s_mov_b64 exec, 3\n"
        "  s_waitcnt vmcnt(0) lgkmcnt(0)\n  v_mov_b32 v20, v10\n  s_mov_b64 exec, -1",
        None,
    ),
    "only the lanes that load": (
        "  s_mov_b64 exec, 1\n" + VM + "  s_mov_b64 exec, 2\n  v_mov_b32 v10, 0\n  v_mov_b32 v20, v10\n  s_mov_b64 exec, -1",
        None,
    ),
    "one of the lanes that load": (
        "  s_mov_b64 exec, 3\n" + VM + "  s_mov_b64 exec, 2\n  v_mov_b32 v10, 0\n  s_mov_b64 exec, -1",
        "G17",
    ),
    "never written": ("  v_mov_b32 v20, v30", "undefined_register"),
    "written in some lanes": ("  s_mov_b64 exec, 1\n  v_mov_b32 v30, 0\n  s_mov_b64 exec, 3\n  v_mov_b32 v20, v30\n"
                              "  s_mov_b64 exec, -1", "undefined_register"),
    "read where written": ("  s_mov_b64 exec, 1\n  v_mov_b32 v30, 0\n  v_mov_b32 v20, v30\n  s_mov_b64 exec, -1", None),
    "a lane that was written": ("  v_writelane_b32 v30, s4, 3\n  s_mov_b64 exec, 12\n  v_readlane_b32 s20, v30, 3\n"
                                "  s_mov_b64 exec, -1", None),
    "another lane than was written": ("  v_writelane_b32 v30, s4, 3\n  s_nop 0\n  v_readlane_b32 s20, v30, 4\n"
                                      "  s_mov_b32 s21, s20", "undefined_register"),
    "copy of half a pair": ("  v_mov_b32 v30, 0\n  v_mov_b64 v[20:21], v[30:31]\n  v_mov_b32 v22, v20", None),
    "copy of half a pair, used": ("  v_mov_b32 v30, 0\n  v_mov_b64 v[20:21], v[30:31]\n  v_mov_b32 v22, v21",
                                  "undefined_register"),
    "spill of nothing": ("  v_writelane_b32 v30, s30, 3", None),
    "spill of nothing, restored": ("  v_writelane_b32 v30, s30, 3\n  s_nop 0\n  v_readlane_b32 s20, v30, 3", None),
    "spill of nothing, restored and used": ("  s_mov_b32 s20, 0\n  v_writelane_b32 v30, s30, 3\n  s_nop 0\n"
                                            "  v_readlane_b32 s20, v30, 3\n  s_mov_b32 s21, s20", "undefined_register"),
    "first lane, written": ("  s_mov_b64 exec, 8\n  v_mov_b32 v30, 0\n  s_nop 3\n  s_mov_b64 exec, 24\n"
                            "  v_readfirstlane_b32 s20, v30\n  s_mov_b64 exec, -1", None),
    "scalar never written": ("  s_mov_b32 s20, s30", "undefined_register"),
    "vcc never written": ("  s_mov_b64 s[20:21], vcc", "undefined_register"),
    "m0 written": ("  s_mov_b32 s20, m0", None),
    "scc never written": ("  s_cselect_b32 s20, 1, 2", "undefined_register"),
    "scc never written, as a condition": ("  s_cbranch_scc1 .Lnext\n.Lnext:", "undefined_register"),
    "scc written": ("  s_cmp_eq_u32 s4, s5\n  s_cselect_b32 s20, 1, 2\n  s_addc_u32 s21, s20, 0", None),
    "half of a pair": ("  s_mov_b32 s30, 0\n  s_mov_b64 s[20:21], s[30:31]", "undefined_register"),
    "half of a pair that op_sel passes over": (
        "  v_mov_b32 v30, 0\n  v_pk_mul_f32 v[20:21], v[30:31], v[30:31] op_sel_hi:[0,0]", None),
    "half of a pair that op_sel takes": (
        "  v_mov_b32 v30, 0\n  v_pk_mul_f32 v[20:21], v[30:31], v[30:31] op_sel_hi:[0,1]", "undefined_register"),
    "half of a scalar pair that op_sel passes over": (
        "  v_mov_b32 v30, 0\n  s_mov_b32 s30, 0\n  v_pk_mul_f32 v[20:21], v[30:31], s[30:31] op_sel_hi:[0,0]", None),
    "half of a wide addend": (
        "  v_mov_b32 v30, 7\n  v_mad_u64_u32 v[20:21], s[20:21], v30, v30, v[30:31]\n  v_mov_b32 v22, v20", None),
    "half of a wide addend passes on": (
        "  v_mov_b32 v21, 0\n  v_mov_b32 v30, 7\n  v_mad_u64_u32 v[20:21], s[20:21], v30, v30, v[30:31]\n"
        "  v_mov_b32 v22, v21", "undefined_register"),
    "half of a scalar addend passes on": (
        "  v_mov_b32 v30, 7\n  s_mov_b32 s30, 0\n  v_mad_i64_i32 v[20:21], s[20:21], v30, v30, s[30:31]\n"
        "  v_mov_b32 v22, v21", "undefined_register"),
    "a lane written": (
        "  v_writelane_b32 v30, 7, 3\n  s_mov_b64 exec, 8\n  v_mov_b32 v20, v30\n  s_mov_b64 exec, -1", None),
    "another lane written": (
        "  v_writelane_b32 v30, 7, 3\n  s_mov_b64 exec, 12\n  v_mov_b32 v20, v30\n  s_mov_b64 exec, -1",
        "undefined_register"),
    "a lane read that was written": ("  v_writelane_b32 v30, 7, 3\n  s_nop 4\n  v_readlane_b32 s20, v30, 3", None),
    "another lane read": (
        "  s_mov_b64 exec, 1\n  v_mov_b32 v30, 0\n  s_nop 4\n  v_readlane_b32 s20, v30, 3\n  s_mov_b64 exec, -1\n"
        "  s_mov_b32 s21, s20", "undefined_register"),
    "first lane read": (
        "  s_mov_b64 exec, 4\n  v_mov_b32 v30, 0\n  s_mov_b64 exec, 12\n  s_nop 4\n  v_readfirstlane_b32 s20, v30\n"
        "  s_mov_b64 exec, -1", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    body, rule = CASES[name]
    assert rules(body) == ([rule] if rule else [])


def test_message_names_register_load_and_counter() -> None:
    finding = only(VM + "  v_mov_b32 v20, v10")
    assert finding.message.startswith("v10 is read while the load at +0x")
    assert finding.message.endswith("is on its way: no s_waitcnt vmcnt covers it")
    assert finding.severity == "error"
    assert (
        "a5 is overwritten" in only("  global_load_dword a5, v1, s[4:5]\n  v_accvgpr_write_b32 a5, 0").message
    )
    assert only(VM.replace("v10", "v2") + "  s_nop 1\n  v_mov_b32 v20, v2").rule == "G17"
    assert (
        "only lgkmcnt(0) covers it" in only(SM + DS + "  s_waitcnt lgkmcnt(1)\n  s_mov_b32 s21, s20").message
    )
    assert "v30 was never written in lane 0" in only("  v_mov_b32 v20, v30").message


@pytest.mark.parametrize("first", [0, 32])
def test_every_vmcnt(first: int) -> None:
    """64 loads, s_waitcnt vmcnt(n): all but the last n are there, and the next one is not."""
    loads = "".join(f"  global_load_dword v{100 + i}, v1, s[4:5] offset:{4 * i}\n" for i in range(64))
    body, late = "", set()
    for n in range(first, first + 32):
        body += loads + f"  s_waitcnt vmcnt({n})\n"
        # When the 64th is issued the first must have returned: the counter has six bits.
        body += f"  v_mov_b32 v20, v{100 + 63 - n}\n"
        if n > 0:
            body += f"  v_mov_b32 v21, v{100 + 64 - n}\n"
            late.add(n)
        body += "  s_waitcnt vmcnt(0)\n"
    found = run(body).findings
    assert {f.rule for f in found} <= {"G17"}
    assert [f.instruction.split()[1] for f in found] == ["v21,"] * len(late)


def test_every_lgkmcnt() -> None:
    reads = "".join(f"  ds_read_b32 v{100 + i}, v1\n" for i in range(16))
    body = ""
    for n in range(16):
        body += reads + f"  s_waitcnt lgkmcnt({n})\n  v_mov_b32 v20, v{100 + 15 - n}\n"
        if n > 0:
            body += f"  v_mov_b32 v21, v{100 + 16 - n}\n"
        body += "  s_waitcnt lgkmcnt(0)\n"
    found = run(body).findings
    assert [f.rule for f in found] == ["G17"] * 15
    assert all(f.instruction.split()[1] == "v21," for f in found)


def test_full_counters_stall_the_issue() -> None:
    """The 64th load waits until the first is back, the 16th LDS read likewise."""
    loads = "".join(f"  global_load_dword v{100 + i}, v1, s[4:5] offset:{4 * i}\n" for i in range(64))
    assert rules(loads + "  v_mov_b32 v20, v100") == []
    assert rules(loads + "  v_mov_b32 v20, v101") == ["G17"]
    reads = "".join(f"  ds_read_b32 v{100 + i}, v1\n" for i in range(16))
    assert rules(reads + "  v_mov_b32 v20, v100") == []
    assert rules(reads + "  v_mov_b32 v20, v101") == ["G17"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "  v_mov_b32 v96, 0",
            "v96 is beyond the kernel's allocation of 96 vector registers .accum_offset 64",
        ),
        ("  v_mov_b32 v20, v63\n  v_accvgpr_write_b32 a32, 0", "a32 is beyond the kernel's allocation of 96"),
        ("  global_load_dwordx4 v[94:97], v1, s[4:5]", "v96 is beyond the kernel's allocation"),
        ("  v_mov_b32 v64, 0\n  v_accvgpr_write_b32 a0, 0", "a0 and v64 are one register .accum_offset 64"),
        ("  global_load_dword a31, v1, s[4:5]\n  v_mov_b32 v95, 0", "v95 and a31 are one register"),
    ],
)
def test_registers_beyond_the_allocation(body: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        run(body, vgprs=96, accum=64)


def test_registers_within_the_allocation() -> None:
    assert rules("  v_mov_b32 v94, 0\n  v_accvgpr_write_b32 a31, 0", vgprs=96, accum=64) == []


def test_checks_can_be_switched_off() -> None:
    data = np.zeros(64, np.uint32)
    body = "  v_lshlrev_b32 v1, 2, v0\n  ds_read_b32 v10, v1\n  v_mov_b32 v20, v10\n"
    assert run_kernel(body, [data], lds=256, options={"check": False}).findings == ()


def test_findings_do_not_change_results() -> None:
    """The value is there although the wait is missing: one fault, one finding."""
    data = np.arange(64, dtype=np.uint32)
    body = "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
    body += "  global_load_dword v2, v1, s[4:5]\n  v_add_u32 v2, 1, v2\n  global_store_dword v1, v2, s[4:5]\n"
    result = run_kernel(body, [data], report_only=True)
    np.testing.assert_array_equal(data, np.arange(1, 65))
    assert [f.instruction.split()[0] for f in result.findings] == ["v_add_u32_e32", "global_store_dword"]
