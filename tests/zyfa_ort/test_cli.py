"""The command line as a user meets it: tables, JSON, exit codes, one-line errors, odd places."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from reference.toy_model import HEAD_DIM, write_toy


def zyfa(
    *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zyfa_ort.cli", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path / "toy.onnx", layers=2)


def test_fuse_prints_every_site_and_what_it_wrote(toy, tmp_path):
    done = zyfa("fuse", toy, tmp_path / "out.onnx", "--precision", "fp8", "--rotate", "hadamard")
    assert done.returncode == 0, done.stderr
    assert "fused" in done.stdout
    assert "fp8 (hilo edges, hadamard)" in done.stdout
    assert f"2 of 2 attention sites fused; wrote {tmp_path / 'out.onnx'}" in done.stdout
    assert (tmp_path / "out.onnx").is_file()


def test_json_is_the_whole_report(toy, tmp_path):
    done = zyfa("fuse", toy, tmp_path / "out.onnx", "--json", "--verify", "--precision", "fp32")
    data = json.loads(done.stdout)
    assert (data["fused"], data["modified"], len(data["sites"])) == (2, True, 2)
    assert data["comparison"]["failures"] == []
    assert done.stderr == ""
    assert json.loads(zyfa("inspect", tmp_path / "out.onnx", "--json").stdout)["already_fused"] == 2
    assert (
        json.loads(zyfa("compare", toy, tmp_path / "out.onnx", "--json", "--runs", "0").stdout)["bound"]
        == "fp32"
    )


def test_fewer_sites_than_asked_for_is_exit_code_2(toy, tmp_path):
    done = zyfa("fuse", toy, tmp_path / "out.onnx", "--min-fused", "3")
    assert done.returncode == 2
    assert "zyfa-ort: --min-fused: expected at least 3, got 2" in done.stderr


def test_a_different_model_is_exit_code_2(toy, tmp_path):
    wrong = write_toy(tmp_path / "wrong.onnx", layers=2, scale=1.02 * HEAD_DIM**-0.5)
    done = zyfa("compare", toy, wrong, "--runs", "2")
    assert done.returncode == 2
    assert "differs: logits on made, seed 0: expected a relative error" in done.stdout
    assert "Latency on this machine" in done.stdout


@pytest.mark.parametrize("command", [["inspect"], ["fuse"], ["compare"]])
@pytest.mark.parametrize("content", [None, b"", b"this is not a model", b"\x08\x07" * 500])
def test_unusable_files_are_one_line_and_exit_code_1(tmp_path, command, content):
    source = tmp_path / "model.onnx"
    if content is not None:
        source.write_bytes(content)
    targets = [tmp_path / "out.onnx"] if command != ["inspect"] else []
    done = zyfa(*command, source, *targets)
    assert done.returncode == 1
    error = [line for line in done.stderr.splitlines() if line.startswith("zyfa-ort: ")]
    assert len(error) == 1
    assert "model.onnx" in error[0]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_debug_shows_the_traceback(tmp_path):
    done = zyfa("--debug", "inspect", tmp_path / "nowhere.onnx")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_odd_places_and_a_plain_locale(tmp_path):
    """Folders with spaces and non-ASCII letters, a locale without them."""
    folder = tmp_path / "Modèle für 日本"
    folder.mkdir()
    write_toy(folder / "größe 1.onnx")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "", "LANG": ""}
    fused = zyfa("fuse", "größe 1.onnx", "ausgabe ü.onnx", "--verify", cwd=folder, env=plain)
    assert fused.returncode == 0, fused.stderr
    assert (folder / "ausgabe ü.onnx").is_file()
    compared = zyfa("compare", "größe 1.onnx", "ausgabe ü.onnx", "--runs", "0", cwd=folder, env=plain)
    assert compared.returncode == 0, compared.stderr
    for command in (["inspect", "ausgabe ü.onnx"], ["inspect", "ausgabe ü.onnx", "--json"], ["doctor"]):
        assert zyfa(*command, cwd=folder, env=plain).returncode == 0


def test_help_names_every_command():
    done = zyfa("--help")
    assert done.returncode == 0
    for command in ("fuse", "inspect", "compare", "doctor"):
        assert command in done.stdout


def test_without_arguments_it_shows_the_help():
    assert zyfa().stdout == zyfa("--help").stdout


def test_the_version_is_the_package_s():
    assert zyfa("--version").stdout == f"zyfa-ort {importlib.metadata.version('zyfa_ort')}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fuse",), "zyfa-ort: Missing argument 'IN'."),
        (("flatten", "a"), "zyfa-ort: No such command 'flatten'."),
        (("inspect", "--all"), "zyfa-ort: No such option: --all"),
    ],
)
def test_errors_of_usage_are_one_line_and_exit_code_1(arguments, message):
    done = zyfa(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{message}\n")


def test_an_ascii_terminal_gets_folded_rows_too(tmp_path):
    """Several equal sites become one row with a character that ASCII lacks."""
    path = write_toy(tmp_path / "toy.onnx", layers=2)
    done = zyfa("inspect", path, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and "2 sites" in done.stdout


def test_control_characters_of_names_are_written_out(tmp_path):
    path = write_toy(tmp_path / "toy.onnx")
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = f"\x1b[31m\n{node.name}"
    onnx.save(model, path)
    shown = zyfa("inspect", path).stdout
    assert "\x1b" not in shown and r"\x1b[31m\n" in shown
