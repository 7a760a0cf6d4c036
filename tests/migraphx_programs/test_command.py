"""``zyfa-ort migraphx`` on the real MIGraphX, and where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from migraphx_programs import debian
from migraphx_programs.models import decoder_inputs, write_decoder

ARGUMENTS = ("-P", "-m", "zyfa_ort.cli", "migraphx")


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.migraphx
def test_a_program_that_loads(ref, tmp_path):
    path, target = write_decoder(tmp_path / "m.onnx", cache=False), tmp_path / "m.mgx"
    python = debian.tree().command(sys.executable)
    options = ("--target", "ref", "--dims", "batch=2", "--dims", "tokens=9")
    done = run(*python, *ARGUMENTS, path, target, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "target": "ref",
        "program": str(target),
        "inputs": {"input_ids": "int64 2x9", "attention_mask": "int64 2x9"},
        "outputs": {"logits": "float32 2x9x64"},
    }
    assert ref.load(target).run(decoder_inputs(2, 9, 0))["logits"].shape == (2, 9, 64)
    shown = run(*python, *ARGUMENTS, path, target, *options)
    assert shown.returncode == 0
    text = " ".join(shown.stdout.split())
    assert f"<MIGraphX program for ref: 3 segments, 2 nodes of ai.zyfa>; wrote {target}" in text.replace(
        "\n", " "
    )


def test_without_migraphx(tmp_path):
    path = write_decoder(tmp_path / "m.onnx", cache=False)
    arguments = (
        sys.executable,
        *ARGUMENTS,
        path,
        tmp_path / "m.mgx",
        "--dims",
        "batch=2",
        "--dims",
        "tokens=9",
    )
    done = run(*arguments, ZYFA_MIGRAPHX_LIBRARY="/nowhere/libmigraphx_c.so.3")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "zyfa-ort: /nowhere/libmigraphx_c.so.3: cannot be loaded: /nowhere/libmigraphx_c.so.3: cannot open shared object"
    )
    assert done.stderr.endswith("; install MIGraphX 7, or set ZYFA_MIGRAPHX_LIBRARY\n")


@pytest.mark.parametrize("given", ["tokens", "tokens=", "tokens=x", "=3=-1"])
def test_dims_that_are_none(tmp_path, given):
    done = run(sys.executable, *ARGUMENTS, tmp_path / "m.onnx", tmp_path / "m.mgx", "--dims", given)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"zyfa-ort: --dims: expected NAME=LENGTH, got {given!r}"
