"""``zyfa-ort emulate`` as a user meets it: words for arguments, tables, JSON, exit codes, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from kernels.emulator.hip_kernels import TOO_EARLY, VECTOR_ADD, code_object
from zyfa_ort.kernels.emulator import EmulationError
from zyfa_ort.kernels.emulator.specification import TYPES, specify

ADD_ARGS = "f32[4,64]=randn:1 f32[256]=ones out:f32[256]"


def emulate(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "zyfa_ort.cli", "emulate", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    path = tmp_path_factory.mktemp("objects") / "add.co"
    path.write_bytes(code_object(VECTOR_ADD))
    return path


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    path = tmp_path_factory.mktemp("objects") / "wrong.co"
    path.write_bytes(code_object(TOO_EARLY))
    return path


def test_a_run_shows_arguments_and_verdict_and_writes_the_output(add, tmp_path):
    saved = tmp_path / "sum.npy"
    done = emulate(add, "--grid", 4, "--block", "64,1,1", "--args", ADD_ARGS, "--output", f"2={saved}")
    assert done.returncode == 0, done.stderr
    assert "kernel on the emulated gfx950" in done.stdout
    assert "256 of 256 elements changed" in done.stdout
    assert "unchanged" in done.stdout
    assert "4 workgroups" in done.stdout and "nothing found wrong" in done.stdout
    expected = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32).reshape(-1) + 1
    np.testing.assert_array_equal(np.load(saved), expected)


def test_json(add):
    done = emulate(add, "--grid", 4, "--args", ADD_ARGS, "--json")
    data = json.loads(done.stdout)
    assert done.stderr == ""
    assert (data["device"], data["workgroups"], data["findings"]) == ("emulated gfx950", 4, [])
    assert data["arguments"][2]["changed"] == 256


def test_a_wrong_kernel_is_exit_code_1_and_a_table(wrong):
    done = emulate(wrong, "--args", ADD_ARGS)
    assert done.returncode == 1
    assert "error G17: register used before the s_waitcnt that covers its load" in done.stdout
    assert "v_add_f32" in done.stdout
    assert emulate(wrong, "--args", ADD_ARGS, "--report-only").returncode == 0
    assert emulate(wrong, "--args", ADD_ARGS, "--no-check").returncode == 0


def test_list_and_disassemble(add):
    listed = emulate(add, "--list")
    assert listed.returncode == 0
    assert "largest block" in listed.stdout and "global_buffer" in listed.stdout
    assert json.loads(emulate(add, "--list", "--json").stdout)[0]["name"] == "kernel"
    text = emulate(add, "--disassemble").stdout
    assert text.startswith("kernel:\n")
    assert "s_load_dwordx4 s[8:11], s[0:1]" in text and "s_endpgm" in text


def test_modelled_time_says_so(add, tmp_path):
    trace = tmp_path / "trace.json"
    done = emulate(add, "--grid", 4, "--args", ADD_ARGS, "--trace", trace, "--clock", 2)
    assert done.returncode == 0, done.stderr
    assert "MODELLED, not measured" in done.stdout
    assert json.loads(trace.read_text())
    data = json.loads(emulate(add, "--grid", 4, "--args", ADD_ARGS, "--timing", "--json").stdout)
    assert data["timing"]["modelled"] is True


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--grid", "4,4,4,4"], "--grid: expected one to three numbers as in 4,2,1, got '4,4,4,4'"),
        (["--kernel", "nothing"], "no kernel 'nothing'; it has 'kernel'"),
        (["--args", "f32[4]"], "expected 3 arguments"),
        (["--args", "g32[4]"], "argument 'g32[4]': expected a type of i8, i16"),
        (["--args", "@nowhere.npy"], "nowhere.npy cannot be read"),
        (["--args", ADD_ARGS, "--output", "3=x.npy"], "number of a buffer (0, 1, 2), got '3=x.npy'"),
        (["--args", "null null null"], "global_load_dword"),
        (
            ["--args", ADD_ARGS, "--accumulation", "quick"],
            "accumulation: expected exact, sequential, pairwise",
        ),
    ],
)
def test_errors_are_one_line(add, options, text):
    done = emulate(add, *options)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("zyfa-ort: ")]
    assert len(lines) == 1 and text in lines[0], done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF", b"this is no code object" * 10])
def test_unusable_files(tmp_path, content):
    path = tmp_path / "x.co"
    if content is not None:
        path.write_bytes(content)
    done = emulate(path, "--list")
    assert done.returncode == 1
    assert done.stderr.startswith("zyfa-ort: ") and done.stderr.count("\n") == 1


# ---- the words ----------------------------------------------------------------------------------------------------------


def test_words_for_buffers(tmp_path):
    np.testing.assert_array_equal(
        specify("i32[2,3]=arange").value, np.arange(6, dtype=np.int32).reshape(2, 3)
    )
    np.testing.assert_array_equal(specify("f32[3]").value, np.zeros(3, np.float32))
    np.testing.assert_array_equal(specify("bf16[3]=1.5").value, np.full(3, 1.5, ml_dtypes.bfloat16))
    assert specify("f32[]=2").array.shape == ()
    np.testing.assert_array_equal(specify("f32[64]=randn:3").value, specify("f32[64]=randn:3").value)
    assert not np.array_equal(specify("f32[64]=randn:3").value, specify("f32[64]=randn:4").value)
    assert specify("u8[1000]=random").array.max() > 200
    unwritten = specify("out:fp8[5]")
    assert unwritten.is_output
    assert set(unwritten.array.view(np.uint8)) == {0xCD}
    assert not specify("f32[3]").is_output

    saved = tmp_path / "x.npy"
    values = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    np.save(saved, values)
    np.testing.assert_array_equal(specify(f"bf16[2,3]=@{saved}").value, values)
    np.testing.assert_array_equal(specify(f"bf16@{saved}").value, values)
    with pytest.raises(EmulationError, match=r"expected shape \[3, 2\] in the file, got \[2, 3\]"):
        specify(f"bf16[3,2]=@{saved}")
    with pytest.raises(EmulationError, match="expected float32 in the file"):
        specify(f"f32@{saved}")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("fill", ["zeros", "ones", "random", "randn", "2", "arange"])
def test_every_type_has_every_fill(name, fill):
    made = specify(f"{name}[8]={fill}").array
    assert made.shape == (8,) and made.dtype == TYPES[name]


def test_words_for_values():
    assert specify("u32=5").value == np.uint32(5) and specify("u32=0x10").value == 16
    assert specify("f32=-0.5").value == np.float32(-0.5)
    assert specify("bytes=00ff").value == b"\0\xff"
    assert specify("null").value is None
    assert specify("i8=-128").value.dtype == np.int8


@pytest.mark.parametrize(
    "word",
    [
        *("", "f32", "f32=", "f32[x]", "u8=256", "u8=-1", "u32=1.5", "f32=one"),
        *("out:f32", "f32[4]=randn:x", "bytes=0g", "f32[4]=some"),
    ],
)
def test_words_that_mean_nothing(word):
    with pytest.raises(EmulationError, match=r"^argument '"):
        specify(word)
