"""Code objects of other makers, fetched by package name for tests only."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache" / "peers"
AITER = "amd-aiter==0.1.7.post2.dev18"


@pytest.fixture(scope="session")
def aiter_objects() -> Path:
    """Folder with the gfx950 code objects that AMD ships in its AITER wheel (the wheel is not installed)."""
    folder = CACHE / "aiter"
    if not folder.is_dir():
        wheels = CACHE / "wheels"
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, AITER], check=True
        )
        partial = CACHE / "aiter.partial"
        (wheel,) = wheels.glob("amd_aiter-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if "/gfx950/" in name and name.endswith(".co"):
                    archive.extract(name, partial)
        partial.rename(folder)
    return folder / "aiter_meta" / "hsa" / "gfx950"
