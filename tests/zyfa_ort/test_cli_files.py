"""Files that `zyfa-ort fuse` and `inspect` cannot read or write, as a user meets them: one line, exit code 1, no trace."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from reference.toy_model import write_toy

DATA = "weights.bin"


def zyfa(*arguments: object, largest_file: int | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command; `largest_file`: bytes after which the system refuses to write on, as a full disk does."""

    def limit() -> None:
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    return subprocess.run(
        [sys.executable, "-B", "-m", "zyfa_ort.cli", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        preexec_fn=limit,
    )


def check_refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith("fusing ")] == [
        f"zyfa-ort: {message}"
    ]
    assert done.stdout == ""


def listing(folder: Path) -> dict[Path, bytes | None]:
    return {one: one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model of a few kilobytes with some 50 kB of external data, and an empty folder "out"."""
    plain = write_toy(tmp_path / "plain.onnx", layers=4)
    path = tmp_path / "in" / "model.onnx"
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
    onnx.save(onnx.load(plain), path, save_as_external_data=True, location=DATA, size_threshold=1000)
    return path


@pytest.mark.parametrize("old", [None, b"an older model"])
@pytest.mark.parametrize("limit", [1000, 30_000])
def test_a_full_disk(source: Path, limit: int, old: bytes | None) -> None:
    """Too small for the model in the folder of its data; too small for a copy of the data."""
    folder = source.parent if limit == 1000 else source.parents[1] / "out"
    assert source.stat().st_size < 30_000 < source.with_name(DATA).stat().st_size
    target = folder / "fused.onnx"
    if old:
        target.write_bytes(old)
    before = listing(source.parents[1])
    check_refused(
        zyfa("fuse", source, target, largest_file=limit), f"{target}: cannot be written: file too large"
    )
    assert listing(source.parents[1]) == before


def test_targets(source: Path) -> None:
    folder = source.parent
    before = listing(folder)
    for target, message in (
        (source, "expected another file than the model that is read, got the same"),
        (folder / DATA, "expected a file to write the model to, got its external data"),
        (folder, "expected the name of a file, got a folder"),
        (folder / "nowhere" / "x.onnx", f"expected an existing folder {folder / 'nowhere'}, got none"),
    ):
        check_refused(zyfa("fuse", source, target), f"{target}: {message}")
        assert listing(folder) == before


def test_sources(source: Path) -> None:
    data, target = source.with_name(DATA), source.with_name("fused.onnx")
    size = data.stat().st_size
    os.truncate(data, size - 1)
    wanted = f"{source}: external data {data}: expected at least {size} bytes, got {size - 1}; is the download complete?"
    check_refused(zyfa("fuse", source, target), wanted)
    check_refused(zyfa("inspect", source, "--json"), wanted)
    data.unlink()
    wanted = f"{source}: external data {data}: cannot be read: no such file or directory"
    check_refused(zyfa("fuse", source, target, "--json"), wanted)
    assert not target.exists()


@pytest.mark.parametrize("how", ["copy", "hardlink", "reference"])
def test_external_data(source: Path, how: str) -> None:
    out = source.parents[1] / "out"
    done = zyfa("fuse", source, out / "fused.onnx", "--external-data", how, "--verify")
    if how == "reference":
        check_refused(
            done,
            f"{out / 'fused.onnx'}: expected its external data {DATA} in the same folder, got it at "
            f"{source.with_name(DATA)}; ONNX allows no data outside: write the model to that folder, "
            "or copy or hardlink the data",
        )
        return
    assert done.returncode == 0, done.stderr
    assert "4 of 4 attention sites fused" in done.stdout
    assert "agrees within the bound for bf16" in done.stdout
    assert (out / DATA).samefile(source.with_name(DATA)) == (how == "hardlink")
    assert zyfa("inspect", out / "fused.onnx").returncode == 0
