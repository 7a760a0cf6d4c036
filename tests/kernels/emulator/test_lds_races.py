"""LDS shared by waves: races, missing waits and barriers, LDS-DMA, whatever the order in which the waves run."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_kernel
from zyfa_ort.kernels.emulator import Finding, Result

START = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshrrev_b32 v3, 6, v0
  v_and_b32 v1, 63, v0
  v_lshlrev_b32 v1, 2, v1
  v_lshlrev_b32 v2, 2, v1
  v_mov_b32 v10, 7
  v_mov_b32 v11, 8
  v_mov_b32 v12, v0
  v_mov_b32 v13, v0
  s_nop 0
  v_readfirstlane_b32 s20, v3
  s_mov_b32 m0, 0
  s_waitcnt lgkmcnt(0)
"""
INIT = """
  ds_write_b128 v2, v[10:13]
  s_waitcnt lgkmcnt(0)
  s_barrier
"""
W = "  s_waitcnt lgkmcnt(0)\n"
V = "  s_waitcnt vmcnt(0)\n"
B = "  s_barrier\n"
DMA, DMA_FAR = "  global_load_lds_dword v1, s[4:5]\n", "  global_load_lds_dword v1, s[4:5] offset:256\n"
WRITE, READ = "  ds_write_b32 v1, v12\n", "  ds_read_b32 v20, v1\n"
ADD = "  ds_add_u32 v1, v10\n"
SEEDS = (0, 1, 2, 3, 4, 5, 6)


def kernel(waves: list[str], *, ready: bool = True) -> str:
    """Wave i runs waves[i]; when `ready`, LDS was initialised by wave 0."""
    text = START + (
        "  s_cmp_lg_u32 s20, 0\n  s_cbranch_scc1 .Linit\n" + INIT.replace(B, "") + ".Linit:\n  s_barrier\n"
        if ready
        else ""
    )
    for i, body in enumerate(waves):
        text += f"  s_cmp_lg_u32 s20, {i}\n  s_cbranch_scc1 .Lnot{i}\n{body}\n{V}{W}  s_endpgm\n.Lnot{i}:\n"
    return text


def run(waves: list[str], seed: int = 0, *, ready: bool = True) -> Result:
    data = np.arange(256, dtype=np.uint32)
    return run_kernel(
        kernel(waves, ready=ready),
        [data],
        block=(64 * len(waves),),
        report_only=True,
        lds=4096,
        options={"order_seed": seed},
    )


def rules(waves: list[str], seed: int = 0, *, ready: bool = True) -> list[str]:
    return sorted({f.rule for f in run(waves, seed, ready=ready).findings})


# What two waves do, and the rules that must be broken (in one of the two, by the order in which they run).
CASES = {
    "read after write, no barrier": (WRITE + W, READ, ["lds_race"]),
    "read after write, barrier": (WRITE + W + B, B + READ, []),
    "read after write, barrier before the wait": (WRITE + B + W, B + READ, ["lds_race"]),
    "read after write, wait after a second barrier": (WRITE + B + W + B, B + B + READ, []),
    "write after read, no barrier": (READ + W, WRITE, ["lds_race"]),
    "write after read, barrier": (READ + W + B, B + WRITE, []),
    "write after read, read still out at the barrier": (READ + B + W, B + WRITE, ["lds_race"]),
    "write after read, waited and a second barrier": (READ + B + W + B, B + B + WRITE, []),
    "an older read waited for, a newer one out": (READ + "  ds_read_b32 v21, v1 offset:256\n  s_waitcnt lgkmcnt(1)\n" + B + W,
                                                  B + WRITE, []),
    "two writers": (WRITE, WRITE, ["lds_race"]),
    "two writers of one value": ("  ds_write_b32 v1, v10\n", "  ds_write_b32 v1, v10\n", ["lds_double_write"]),
    "two writers in turn": (WRITE + W + B, B + WRITE, []),
    "readers": (READ, READ, []),
    "other bytes": ("  ds_write_b8 v1, v10\n", "  ds_write_b8 v1, v10 offset:1\n  ds_read_u8 v20, v1 offset:1\n", []),
    "the same byte": ("  ds_write_b8 v1, v10\n", "  ds_write_b8 v1, v11\n", ["lds_race"]),
    "bytes of a dword read": ("  ds_write_b8 v1, v10\n", READ, ["lds_race"]),
    "halves": ("  ds_write_b16 v1, v10\n", "  ds_write_b16 v1, v11 offset:2\n", []),
    "halves, then the dword": ("  ds_write_b16 v1, v10\n" + W + B, "  ds_write_b16 v1, v11 offset:2\n" + W + B + READ, []),
    "atomics": (ADD, ADD, []),
    "atomics, then a read": (ADD + W + B, ADD + W + B + READ, []),
    "atomics, one not waited for": (ADD + B + W, ADD + W + B + READ, ["lds_race"]),
    "atomic and read": (ADD, READ, ["lds_race"]),
    "atomic and write": (ADD, WRITE, ["lds_race"]),
    "counts": ("  ds_append v20 offset:8\n", "  ds_append v20 offset:8\n", []),
    "transposed read": ("  v_lshlrev_b32 v4, 1, v1\n  ds_read_b64_tr_b8 v[20:21], v4\n", WRITE, ["lds_race"]),
    "two-address read": ("  ds_read2_b32 v[20:21], v1 offset0:128 offset1:0\n", WRITE, ["lds_race"]),
    "two-address write": ("  ds_write2_b32 v1, v10, v12 offset0:128 offset1:0\n" + W, READ, ["lds_race"]),
    "other addresses": (WRITE, "  ds_read_b32 v20, v1 offset:256\n", []),
    "flat write": ("  v_mov_b32 v5, 0x10000\n  v_mov_b32 v4, v1\n  flat_store_dword v[4:5], v12\n", READ, ["lds_race"]),
    "LDS-DMA read by the other, no barrier": (DMA + V, READ, ["G18", "lds_dma_overwrite"]),
    "LDS-DMA read by the other, barrier": (DMA + V + B, B + READ, []),
    "LDS-DMA read by the other, barrier before the wait": (DMA + B + V, B + READ, ["G18"]),
    "LDS-DMA and another wait": (DMA + W + B + V, B + READ, ["G18"]),
    "LDS-DMA, wait for all but a newer one": (DMA + DMA_FAR + "  s_waitcnt vmcnt(1)\n" + B, B + READ, []),
    "LDS-DMA, wait for all but the one that is read": (DMA_FAR + DMA + "  s_waitcnt vmcnt(1)\n" + B, B + READ, ["G18"]),
    "LDS-DMA over data that the other reads": (DMA + V, READ + W, ["G18", "lds_dma_overwrite"]),
    "LDS-DMA over data that was read": (B + DMA + V, READ + W + B, []),
    "LDS-DMA over data whose read is out": (B + DMA + V, READ + B + W, ["lds_dma_overwrite"]),
    "LDS-DMA over another's store": (DMA + V, "  ds_write_b32 v1, v11\n", ["lds_race"]),
    "own LDS-DMA read too early": (DMA + READ, "", ["G18"]),
    "own LDS-DMA read after the wait": (DMA + V + READ, "", []),
    "own LDS-DMA overwritten": (DMA + WRITE, "", ["lds_race"]),
    "own LDS-DMA over a store that is out": (WRITE + DMA, "", ["lds_race"]),
    "own LDS-DMA over a finished store": (WRITE + W + DMA, "", []),
    "own LDS-DMA twice": (DMA + DMA, "", []),
    "LDS-DMA of both": (DMA + V, DMA + V, ["lds_race"]),
    "LDS-DMA of both in turn": (DMA + V + B, B + DMA, []),
    "LDS-DMA over one that was not waited for": (DMA + B + V, B + DMA, ["lds_dma_overwrite"]),
    "own LDS-DMA over a read that is out": (READ + DMA, "", ["lds_dma_overwrite"]),
    "own LDS-DMA over a read that is out, behind a barrier": (READ + B + DMA, B, ["lds_dma_overwrite"]),
    "own LDS-DMA over a finished read": (READ + W + DMA, "", []),
    "own LDS-DMA beside a read that is out": (READ + DMA_FAR, "", []),
    "own LDS-DMA over the older of two reads":
        (READ + "  ds_read_b32 v21, v1 offset:512\n  s_waitcnt lgkmcnt(1)\n" + DMA, "", []),
    "own LDS-DMA over the newer of two reads":
        ("  ds_read_b32 v21, v1 offset:512\n" + READ + "  s_waitcnt lgkmcnt(1)\n" + DMA, "", ["lds_dma_overwrite"]),
    "own write and read": (WRITE + READ, "", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    first, second, wanted = CASES[name]
    for waves in ([first, second], [second, first]):
        barriers = max(body.count("s_barrier") for body in waves)
        waves = [body + B * (barriers - body.count("s_barrier")) for body in waves]
        for seed in (0, 3):
            found = rules(waves, seed)
            assert found == wanted or (len(wanted) == 2 and found and set(found) < set(wanted)), (waves, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_races_are_found_in_every_order(seed: int) -> None:
    waves = [WRITE + W + B, READ + W + B, B, B + READ]
    assert rules(waves, seed) == ["lds_race"]
    waves = [WRITE + W + B, B + READ + W, B + READ, B]
    assert rules(waves, seed) == []


def message(found: tuple[Finding, ...]) -> str:
    (finding,) = found
    return finding.message


def test_messages_name_waves_address_and_instruction() -> None:
    result = run([WRITE + W, READ])
    text = message(result.findings)
    assert re.fullmatch(
        r"LDS 0x0 is read by wave 1; wave 0 wrote it by a store at \+0x[0-9a-f]+: no barrier between them",
        text,
    )
    offset = int(re.search(r"\+0x([0-9a-f]+)", text)[1], 16)  # type: ignore[index]
    assert offset < result.findings[0].offset
    assert "no s_waitcnt of the writer before the barrier" in message(run([WRITE + B + W, B + READ]).findings)
    text = message(run([READ + W, WRITE]).findings)
    assert re.match(r"LDS 0x0 is overwritten by wave 1 although wave 0 reads it \(last read at \+0x", text)
    assert "LDS-DMA at +0x" in message(run([DMA + B + V, B + READ]).findings)
    assert "with the same value, by wave 0" in message(
        run(["  ds_write_b32 v1, v10\n", "  ds_write_b32 v1, v10\n"]).findings
    )


def test_double_writes_of_one_value_are_warnings() -> None:
    result = run(["  ds_write_b32 v1, v10\n", "  ds_write_b32 v1, v10\n"])
    assert [f.severity for f in result.findings] == ["warning"]


def test_one_wave_needs_no_barrier() -> None:
    assert rules([WRITE + READ + W + WRITE + ADD + READ], ready=False) == []


def test_undefined_bytes() -> None:
    assert rules([READ], ready=False) == ["undefined_lds"]
    assert rules(["  ds_write_b8 v1, v10\n  ds_read_u8 v20, v1\n"], ready=False) == []
    assert rules(["  ds_write_b8 v1, v10\n" + READ], ready=False) == ["undefined_lds"]
    halves = "  ds_write_b16 v1, v10\n  ds_write_b16 v1, v10 offset:2\n"
    assert rules([halves + READ], ready=False) == []
    assert rules([ADD], ready=False) == []
    assert rules([DMA + V + READ], ready=False) == []


def test_private_parts_of_shared_memory() -> None:
    """Every wave works on its own quarter, without barriers."""
    body = (
        "  v_lshlrev_b32 v4, 2, v0\n  ds_write_b32 v4, v12\n  ds_read_b32 v20, v4\n  s_waitcnt lgkmcnt(0)\n"
    )
    assert rules([body * 3] * 4, ready=False) == []


def test_many_epochs() -> None:
    """A ring of two buffers filled by LDS-DMA, one barrier per step; the wait that is one too small is found."""

    def ring(count: int) -> str:
        load = "  s_mov_b32 m0, {0}\n  s_nop 0\n  global_load_lds_dword v1, s[4:5]\n"
        read = "  ds_read_b32 v20, v1 offset:{0}\n  s_waitcnt lgkmcnt(0)\n"
        text = load.format(0)
        for step in range(6):
            here, there = (0, 1024) if step % 2 == 0 else (1024, 0)
            text += load.format(there) + f"  s_waitcnt vmcnt({count})\n" + B + read.format(here) + B
        return text

    def other(count: int) -> str:
        text = ""
        for step in range(6):
            text += (
                B
                + f"  ds_read_b32 v20, v1 offset:{0 if step % 2 == 0 else 1024}\n  s_waitcnt lgkmcnt(0)\n"
                + B
            )
        return text

    assert rules([ring(1), other(1)]) == []
    assert rules([ring(2), other(2)]) == ["G18"]


@pytest.mark.parametrize(
    ("waves", "wanted"),
    [
        ([B + B, B + B], []),
        ([B, B + B], ["barrier_divergence"]),
        ([B + B, B], ["barrier_divergence"]),
        (["", ""], []),
        (["", B], ["barrier_divergence"]),
    ],
)
def test_waves_that_end_before_a_barrier(waves: list[str], wanted: list[str]) -> None:
    for seed in (0, 1):
        result = run(waves, seed)
        assert sorted({f.rule for f in result.findings}) == wanted
        assert all("has ended after" in f.message and f.severity == "error" for f in result.findings)
