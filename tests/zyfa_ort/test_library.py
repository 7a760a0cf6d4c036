"""Finding and loading the operator library, and what a user is told when that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnxruntime as ort
import pytest

from zyfa_ort import library_path, register
from zyfa_ort.errors import LibraryError


def test_the_installed_library_is_found():
    path = Path(library_path())
    assert path.name == "libzyfa_ort_ops.so"
    assert path.is_file()


def test_a_missing_override_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("ZYFA_LIBRARY", str(tmp_path / "nowhere.so"))
    with pytest.raises(
        LibraryError, match=r"ZYFA_LIBRARY: expected the path .* found no file at .*nowhere\.so"
    ):
        library_path()


def test_a_relative_override_is_the_callers(monkeypatch, tmp_path):
    """ONNX Runtime would look for it in its own folder."""
    (tmp_path / "lib.so").write_bytes(Path(library_path()).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZYFA_LIBRARY", "lib.so")
    assert library_path() == str(tmp_path / "lib.so")


def test_a_text_file_named_so_is_refused_in_one_line(monkeypatch, tmp_path):
    fake = tmp_path / "fake.so"
    fake.write_text("not a library")
    monkeypatch.setenv("ZYFA_LIBRARY", str(fake))
    with pytest.raises(LibraryError, match=r"fake\.so: ONNX Runtime cannot load this library") as caught:
        register(ort.SessionOptions())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["missing.so", "text.so"])
def test_tools_say_so_without_a_traceback(value, tmp_path):
    (tmp_path / "text.so").write_text("not a library")
    done = subprocess.run(
        [sys.executable, "-m", "zyfa_ort.cli", "doctor"],
        env={"PATH": "/usr/bin:/bin", "ZYFA_LIBRARY": str(tmp_path / value)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert value in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_registering_gives_the_options_back():
    options = ort.SessionOptions()
    assert register(options) is options
