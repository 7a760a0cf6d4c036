"""MIGraphX's gpu target without a GPU: its compiler is real, the device is the emulated one.

MIGraphX's own kernels are compiled by the real hiprtc for gfx950 and run on the emulator. Stand-ins are: rocBLAS for
matrix products (`blas.cc`), and of the kernels compiled beforehand those that copy and fill (`device.cc`). What else
MIGraphX would call on a GPU (hipBLASLt, MIOpen, further kernels) ends the process with its name.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from zyfa_ort.kernels.emulator import hip_library_path

from migraphx_programs import debian

HERE = Path(__file__).parent
HIP = "libamdhip64.so.6"
ENVIRONMENT = {"MIGRAPHX_SET_GEMM_PROVIDER": "rocblas"}
# How names of a library's functions begin: hipBLASLt, MIOpen, rocBLAS, MIGraphX's own kernels.
HIPBLASLT, MIOPEN, ROCBLAS = ("hipblas", "_ZN13hipblaslt_ext"), ("miopen",), ("rocblas",)
DEVICE = re.compile(r"_ZN8migraphx(\d+)(version_\w+)")
# Handles are made before anything is asked of them.
ALLOWED = ("miopenCreate", "miopenCreateWithStream", "miopenDestroy", "hipblasLtCreate", "hipblasLtDestroy")
GIVEN = ("contiguous", "fill")  # by device.cc


def folder(tree: debian.Tree) -> Path:
    """Folder of the libraries, to be looked in first. Raises debian.Unavailable: there is no compiler."""
    compiler = shutil.which("c++") or shutil.which("clang++")
    if compiler is None or shutil.which("nm") is None:
        raise debian.Unavailable("the rig's libraries need a C++ compiler and nm")
    gpu = next(tree.root.rglob("libmigraphx_gpu.so.*.0"))
    sources = b"".join((HERE / name).read_bytes() for name in ("blas.cc", "device.cc", "rig.py"))
    made = debian.CACHE / f"rig-{hashlib.sha256(sources + gpu.name.encode()).hexdigest()[:12]}"
    if not made.is_dir():
        with tempfile.TemporaryDirectory(dir=debian.CACHE) as scratch:
            _build(compiler, gpu, Path(scratch) / "rig")
            (Path(scratch) / "rig").rename(made)
    link = made / HIP  # an installed library may move
    link.unlink(missing_ok=True)
    link.symlink_to(hip_library_path())
    return made


def _build(compiler: str, gpu: Path, target: Path) -> None:
    target.mkdir()
    wanted = _undefined(gpu)
    version = next(match for name in wanted if (match := DEVICE.match(name)))
    namespace = version[2][: int(version[1])]
    device = [name for name in wanted if f"{namespace}3gpu6device" in name]
    missing = [name for name in device if not any(f"{len(one)}{one}" in name for one in GIVEN)]
    _compile(compiler, target / "libhipblaslt.so.1", _beginning(wanted, HIPBLASLT))
    _compile(compiler, target / "libMIOpen.so.1", _beginning(wanted, MIOPEN))
    solutions = [name for name in _beginning(wanted, ROCBLAS) if name.endswith("get_solutions")]
    _compile(compiler, target / "librocblas.so.4", solutions, HERE / "blas.cc")
    number = gpu.name.removeprefix("libmigraphx_gpu.so.").removesuffix(".0")
    library = target / f"libmigraphx_device.so.{number}"
    _compile(compiler, library, missing, HERE / "device.cc", f"-DMIGRAPHX_VERSION={namespace}")


def _undefined(library: Path) -> list[str]:
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True
    )
    return sorted({line.split()[-1].split("@")[0] for line in done.stdout.splitlines()})


def _beginning(names: Iterable[str], beginnings: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith(beginnings)]


def _refusal(name: str) -> str:
    if name in ALLOWED:
        return f'extern "C" int {name}(void** handle, ...) {{ static int one; if (handle) *handle = &one; return 0; }}\n'
    return f'extern "C" int {name}(...) {{ std::fprintf(stderr, "%s: not in the rig\\n", "{name}"); std::abort(); }}\n'


def _compile(compiler: str, target: Path, refusing: Iterable[str], *more: Path | str) -> None:
    source = target.with_suffix(".c++")
    source.write_text(
        "".join(["#include <cstdio>\n#include <cstdlib>\n", *map(_refusal, refusing)]), encoding="utf-8"
    )
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", "-w", "-xc++", f"-Wl,-soname,{target.name}"]
    link = ["-Wl,--unresolved-symbols=ignore-all", "-o", target]
    subprocess.run([compiler, *flags, source, *more, *link], check=True)
