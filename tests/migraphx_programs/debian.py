"""The real MIGraphX from Debian's archive, unpacked below .cache without touching the system.

Debian has it in unstable only, built against a newer C library than this machine's: programs that use it run under that
C library's own loader. For the ``gpu`` target there is hiprtc with its compiler, but no BLAS library (440 MB) and no HIP:
those are what `rig.py` makes.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "migraphx"
SUITE = "sid"
CORE = (
    "libmigraphx-c3", "migraphx-tools", "libprotobuf32t64", "libsqlite3-0", "libstdc++6", "libgcc-s1", "libc6", "zlib1g",
)  # fmt: skip
COMPILER = (
    "libhiprtc6", "libhiprtc-builtins6", "libamd-comgr3", "libllvm21", "libclang-common-21-dev", "libnuma1", "libzstd1",
    "libffi8", "libedit2", "libxml2-16", "libz3-4", "libtinfo6", "libbsd0", "libmd0", "liblzma5",
)  # fmt: skip
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/migraphx/lib")
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
# Kernels of the gpu target that are compiled beforehand, for every GPU: 375 MB. `rig.py` makes it with refusals inside.
DEVICE_LIBRARY = "libmigraphx_device.so"


class Unavailable(Exception):
    """There is no way to get it here; the text says why."""


@dataclass(frozen=True)
class Tree:
    """An unpacked MIGraphX."""

    root: Path

    def command(self, python: str, *first: Path) -> list[str]:
        """How to run a Python on this tree's libraries, those of the folders `first` in front."""
        folders = [str(folder) for folder in (*first, *(self.root / name for name in LIBRARIES))]
        return [str(self.root / LOADER), "--library-path", ":".join(folders), python]


def tree() -> Tree:
    """Downloaded at the first call, about 110 MB. Raises Unavailable."""
    packages = (*CORE, *COMPILER)
    done = CACHE / "packages.txt"
    if done.is_file() and done.read_text(encoding="utf-8").split() == list(packages):
        return Tree(CACHE / "unpacked")
    if platform.machine() != "x86_64":
        raise Unavailable(f"Debian has MIGraphX for x86_64, this is {platform.machine()}")
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Unavailable("MIGraphX comes from Debian's archive, and this machine has no apt-get")
    fetching = _fetching()
    CACHE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as scratch:
        try:
            source = fetching.machine_source(fetching.own_suite())
            unpacked = fetching.debian_packages(SUITE, source, Path(scratch) / SUITE, list(packages))
        except fetching.Unavailable as reason:
            raise Unavailable(f"MIGraphX from Debian's suite {SUITE}: {reason}") from reason
        for library in unpacked.rglob(f"{DEVICE_LIBRARY}*"):
            library.unlink()
        made = Path(scratch) / "made"
        made.mkdir()
        unpacked.rename(made / "unpacked")
        (made / done.name).write_text("\n".join(packages), encoding="utf-8")
        shutil.rmtree(CACHE, ignore_errors=True)
        made.rename(CACHE)
    return Tree(CACHE / "unpacked")


def _fetching() -> ModuleType:
    """The build's script that reads the machine's apt sources."""
    spec = importlib.util.spec_from_file_location(
        "fetch_ort_headers", ROOT / "custom_ops/fetch_ort_headers.py"
    )
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
