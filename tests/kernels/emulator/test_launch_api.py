"""The Python API of the emulator: what it takes, what it refuses, what a result says."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kernels.emulator.hip_kernels import FOREVER, TOO_EARLY, VECTOR_ADD, code_object
from kernels.emulator.wave_kernel import kernel_text
from zyfa_ort.kernels import emulator
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.emulator import Device, EmulationError, launch

N = 256


def floats(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N).astype(np.float32)


def with_arguments(body: str, *arguments: str) -> bytes:
    """A kernel whose metadata lists these arguments instead of pointers."""
    text = kernel_text(body, pointers=1)
    head, tail = text.split("    .args:\n")
    end = tail[tail.index("...\n") :]
    listed = "".join(f"      - {{{one}}}\n" for one in arguments)
    text = f"{head}    .args:\n{listed}{end}".replace("kernarg_segment_size: 8", "kernarg_segment_size: 32")
    return assemble(text.replace("kernarg_size 8", "kernarg_size 32"))


# out[0] = the 8 bytes behind the pointer.
STORE_ARGUMENT = """
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  s_load_dwordx2 s[10:11], s[0:1], 0x8
  v_mov_b32_e32 v1, 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v2, s10
  v_mov_b32_e32 v3, s11
  s_mov_b64 exec, 1
  global_store_dwordx2 v1, v[2:3], s[8:9]
"""
POINTER = ".name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global"


@pytest.fixture(scope="module")
def stores():
    return with_arguments(STORE_ARGUMENT, POINTER, ".name: x, .offset: 8, .size: 4, .value_kind: by_value")


def test_buffers_are_changed_in_place():
    a, b, c = floats(1), floats(2), np.zeros(N, np.float32)
    result = launch(code_object(VECTOR_ADD), "kernel", 4, 64, [a, b, c])
    np.testing.assert_array_equal(c, a + b)
    assert (result.workgroups, result.findings) == (4, ())
    assert result.instructions > 4 * 10


@pytest.mark.parametrize("grid", [4, (4,), (4, 1), [4, 1, 1], (np.int64(4),)])
def test_sizes_are_filled_up(grid):
    a, c = floats(), np.zeros(N, np.float32)
    assert launch(code_object(VECTOR_ADD), "kernel", grid, 64, [a, a, c]).workgroups == 4


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"grid": 0}, "grid: expected an integer of at least 1, got 0"),
        ({"grid": (1, 1, 1, 1)}, "grid: expected 1 to 3 sizes"),
        ({"grid": 2**26}, r"grid\[0\]=67108864 times block\[0\]=64 work-items, the limit is 2\^32 - 1"),
        ({"grid": (2**31 - 1,) * 3, "block": 1}, r"more than 2\^48 workgroups"),
        ({"grid": (2**16, 2**16), "timing": {}}, "timing: 4294967296 workgroups, the limit is 16777216"),
        # No table of a grid's workgroups is made before the first one has run.
        ({"grid": (2**25, 2**16)}, r"workgroup \(4,0,0\), wave 0, .*past the end of"),
        ({"grid": (2**25, 2**16), "order_seed": 5}, "past the end of"),
        ({"block": 1.5}, "block: expected"),
        ({"block": 1025}, "block"),
        ({"block": (64, 32)}, "2048 work-items per workgroup, the kernel allows 1024"),
        ({"threads": 0}, "threads: expected"),
        ({"max_instructions": 0}, "max_instructions: expected"),
        ({"order_seed": -1}, "order_seed: expected"),
        ({"accumulation": "fast"}, "accumulation: expected exact, sequential, pairwise, got 'fast'"),
        ({"dynamic_lds": 163841}, "163841 bytes of LDS, the limit is 163840"),
        ({"kernel": "kernels"}, "no kernel 'kernels'; it has 'kernel'"),
        ({"code_object": b"no ELF"}, "ELF"),
        ({"args": [None, None]}, r"expected 3 arguments .*got 2"),
    ],
)
def test_wrong_launches_are_one_line(sizes, text):
    a = floats()
    given = {
        "code_object": code_object(VECTOR_ADD),
        "kernel": "kernel",
        "grid": 4,
        "block": 64,
        "args": [a] * 3,
    }
    with pytest.raises(EmulationError, match=text) as caught:
        launch(**{**given, **sizes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (5, 5),
        (-1, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (True, 1),
        (0.5, struct.unpack("<I", struct.pack("<f", 0.5))[0]),
        (np.float32(2.0), 0x40000000),
        (np.uint32(7), 7),
        (b"\1\2\3\4", 0x04030201),
        (np.array([1.5], ml_dtypes.bfloat16).view(np.uint16)[0].astype(np.uint32), 0x3FC0),
    ],
)
def test_values(stores, value, stored):
    out = np.zeros(2, np.uint32)
    launch(stores, "kernel", 1, 64, [out, value])
    assert out[0] == stored


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(1), r"argument 1 'x': expected a value of 4 bytes, got float64 \(8 bytes\)"),
        (1 << 32, "argument 1 'x': expected an integer of 4 bytes, got 4294967296"),
        (b"123", "expected a value of 4 bytes, got 3 bytes"),
        (np.zeros(4), r"argument 1 'x': expected a value of 4 bytes, got an array of float64\[4\]"),
        (None, "expected a value of 4 bytes, got NoneType"),
        ("5", "expected a value of 4 bytes, got str"),
    ],
)
def test_values_that_do_not_fit(stores, value, text):
    with pytest.raises(EmulationError, match=text):
        launch(stores, "kernel", 1, 64, [np.zeros(2, np.uint32), value])


@pytest.mark.parametrize("value", [5, 0.5, b"12345678", np.int64(5)])
def test_a_value_is_no_buffer(stores, value):
    with pytest.raises(EmulationError, match=r"argument 0 'out': expected a buffer \(an array"):
        launch(stores, "kernel", 1, 64, [value, 1])


def test_arguments_by_name(stores):
    out = np.zeros(2, np.uint32)
    launch(stores, "kernel", 1, 64, {"x": 9, "out": out})
    assert out[0] == 9
    with pytest.raises(EmulationError, match="expected arguments named out, x, got out, y"):
        launch(stores, "kernel", 1, 64, {"out": out, "y": 9})


def test_packed_arguments():
    code = with_arguments(STORE_ARGUMENT, ".name: raw, .offset: 0, .size: 32, .value_kind: by_value")
    out = np.zeros(2, np.uint32)
    launch(
        code, "kernel", 1, 64, {"out": out},
        kernarg=lambda addresses: struct.pack("<QQ16x", addresses[0], 0x0123456789ABCDEF),
    )  # fmt: skip
    assert list(out) == [0x89ABCDEF, 0x01234567]
    with pytest.raises(EmulationError, match="expected 32 bytes of packed arguments, got 31"):
        launch(code, "kernel", 1, 64, bytes(31))


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16, np.int8, np.complex64]
)
def test_any_dtype_is_a_buffer(dtype):
    a = np.ones(4 * N, dtype)
    out = np.zeros(4 * N, dtype)
    b = np.zeros(4 * N, np.uint8)
    code = code_object(VECTOR_ADD.replace("v_add_f32", "v_add_u32"))
    launch(code, "kernel", a.nbytes // 256 if a.nbytes < 1024 else 4, 64, [a, b, out])
    np.testing.assert_array_equal(out.view(np.uint8)[:1024], a.view(np.uint8)[:1024])


def test_read_only_buffers_can_be_read_and_not_written():
    a = floats()
    a.flags.writeable = False
    out = np.zeros(N, np.float32)
    launch(code_object(VECTOR_ADD), "kernel", 4, 64, [a, a, out])
    np.testing.assert_array_equal(out, a + a)
    with pytest.raises(EmulationError, match="into 'argument 2', which is read-only"):
        launch(code_object(VECTOR_ADD), "kernel", 4, 64, [out, out, a])


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((8, 64), np.float32)[:, ::2], "argument 2: expected a C-contiguous array"),
        (np.zeros((64, 8), np.float32).T, "use numpy.ascontiguousarray"),
        (np.zeros(4, object), "expected an array of numbers, got dtype object"),
    ],
)
def test_unusable_arrays(array, text):
    with pytest.raises(EmulationError, match=text):
        launch(code_object(VECTOR_ADD), "kernel", 4, 64, [floats(), floats(), array])


def test_past_the_end_names_the_buffer():
    a = floats()
    with pytest.raises(EmulationError, match=r"workgroup \(4,0,0\), wave 0, .*past the end of 'argument 0'"):
        launch(code_object(VECTOR_ADD), "kernel", 5, 64, [a, a, np.zeros_like(a)])
    with pytest.raises(EmulationError, match="global_load_dword"):
        launch(code_object(VECTOR_ADD), "kernel", 1, 64, [None, a, a])


def test_a_loop_without_end():
    with pytest.raises(EmulationError, match="no end after 1000 instructions"):
        launch(code_object(FOREVER, 0), "kernel", 1, 64, [], max_instructions=1000)


def test_findings_raise_or_are_reported():
    a = floats()
    arguments = (code_object(TOO_EARLY), "kernel", 4, 64, [a, a, np.zeros_like(a)])
    with pytest.raises(EmulationError, match="error G17"):
        launch(*arguments)
    result = launch(*arguments, report_only=True)
    assert result.errors and set(result.by_rule()) >= {"G17"}
    first = result.errors[0]
    assert first.instruction.startswith("v_add_f32") and first.workgroup == (0, 0, 0)
    table = result.table()
    assert "error G17: register used before the s_waitcnt" in table
    assert "v_add_f32" in table
    data = json.loads(result.to_json())
    assert data["errors"] == len(result.errors)
    assert data["findings"][0]["rule"] == first.rule
    assert launch(*arguments, check=False).findings == ()


def test_order_of_waves_can_be_shuffled():
    a, out = floats(), np.zeros(N, np.float32)
    for seed in (1, 2):
        launch(code_object(VECTOR_ADD), "kernel", 1, 256, [a, a, out], order_seed=seed, threads=2)
        np.testing.assert_array_equal(out, a + a)


@pytest.mark.parametrize("seed", [0, 9])
def test_every_workgroup_runs_once_in_grids_larger_than_what_is_shuffled_together(seed):
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_lshl_b32 s6, s2, 2
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s6
  s_addc_u32 s5, s5, 0
  s_mov_b64 exec, 1
  global_atomic_add v1, v2, s[4:5]
"""
    count = np.zeros(2 * 65536 + 3, np.uint32)
    code = assemble(kernel_text(body, pointers=1))
    assert launch(code, "kernel", count.size, 64, [count], order_seed=seed).workgroups == count.size
    assert (count == 1).all()


def test_a_device_keeps_buffers_over_launches():
    device = Device()
    a, total = floats(), np.zeros(N, np.float32)
    address = device.address(total, "total")
    for _ in range(3):
        device.launch(code_object(VECTOR_ADD), "kernel", 4, 64, [a, total, total])
    np.testing.assert_array_equal(total, (a + a) + a)
    assert device.address(total) == address < 2**48
    device.launch(code_object(VECTOR_ADD), "kernel", 4, 64, [a, a, np.uint64(address)])
    np.testing.assert_array_equal(total, a + a)
    device.free(total)
    with pytest.raises(EmulationError, match="is no buffer of this device"):
        device.free(total)
    with pytest.raises(EmulationError, match="global_store_dword"):
        device.launch(code_object(VECTOR_ADD), "kernel", 4, 64, [a, a, np.uint64(address)])


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory"
)
def test_a_thousand_launches_keep_no_memory():
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    a, out = floats(), np.zeros(N, np.float32)
    code, wrong = code_object(VECTOR_ADD), code_object(TOO_EARLY)
    for _ in range(20):
        launch(code, "kernel", 4, 64, [a, a, out])
        launch(wrong, "kernel", 4, 64, [a, a, out], report_only=True)
    before = resident()
    for _ in range(500):
        launch(code, "kernel", 4, 64, [a, a, out])
        launch(wrong, "kernel", 4, 64, [a, a, out], report_only=True)
    # A wave's registers alone are 256 KiB.
    assert resident() - before < 16 << 20


def test_looking_into_a_code_object():
    code = code_object(VECTOR_ADD)
    (kernel,) = emulator.kernels(code)
    assert (kernel.name, kernel.vgprs, kernel.agprs, kernel.waves_per_simd) == ("kernel", 512, 256, 1)
    assert [argument.is_buffer for argument in kernel.parameters] == [True] * 3
    lines = emulator.disassemble(code, "kernel")
    assert lines[0].text.startswith("s_load_dwordx4 s[8:11], s[0:1]")
    assert lines[-1].text == "s_endpgm"
    assert [line.offset for line in lines[:3]] == [0, 8, 16]
    with pytest.raises(EmulationError, match="no kernel 'other'"):
        emulator.disassemble(code, "other")
    (branch, _end) = emulator.disassemble(code_object(FOREVER, 0), "kernel")
    assert branch.target == 0
