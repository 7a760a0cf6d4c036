"""Stand-ins for the ROCm libraries that a provider of a wheel is linked to, made from what it asks of them.

libamdhip64 hands every call to the library that ZYFA_HIP_LIBRARY names, so that provider and operator library share one
(emulated) device. Of all others, what makes and destroys handles succeeds, and what would compute fails: no wrong numbers.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from custom_ops.wheels.elf import Wanted, needs_of

HERE = Path(__file__).parent
HIP, MIGRAPHX = "libamdhip64.so.7", "libmigraphx_c.so.3"
# Part of every Linux machine.
_SYSTEM = ("libstdc++.", "libm.", "libgcc_s.", "libc.", "ld-linux")
# Where symbols without a version come from.
_PREFIXES = {
    "hipblas": "libhipblas.so.3",
    "rocblas_": "libhipblas.so.3",
    "hipfft": "libhipfft.so.0",
    "rsmi_": "librocm_smi64.so.1",
    "migraphx_": MIGRAPHX,
}
# Calls that a session makes before it computes anything; each gives a handle, or nothing.
_HANDLES = ("Create", "Destroy", "SetStream")
_FORWARDING = """\
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#define FORWARD(name) \\
  __attribute__((visibility("hidden"))) void* target_##name; \\
  __asm__(".text\\n.globl " #name "\\n.type " #name ",@function\\n" #name ": jmp *target_" #name "(%rip)\\n");
#define FUNCTIONS(F) {functions}
FUNCTIONS(FORWARD)
__attribute__((constructor)) static void find(void) {{
  const char* path = getenv("ZYFA_HIP_LIBRARY");
  void* library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
#define FIND(name) \\
  if (library == NULL || (target_##name = dlsym(library, #name)) == NULL) {{ \\
    fprintf(stderr, "stand-in for HIP: no " #name " in %s\\n", path != NULL ? path : "(ZYFA_HIP_LIBRARY is not set)"); \\
    abort(); \\
  }}
  FUNCTIONS(FIND)
}}
"""


def library_of(wanted: Wanted) -> str | None:
    """The soname that provides it; None when the system does, or when it is optional."""
    if wanted.soname is not None:
        return None if wanted.soname.startswith(_SYSTEM) else wanted.soname
    return next((soname for prefix, soname in _PREFIXES.items() if wanted.name.startswith(prefix)), None)


def make_stand_ins(provider: Path, folder: Path) -> Path:
    """Compiles one library per soname into `folder`, for LD_LIBRARY_PATH, and returns it."""
    if platform.machine() != "x86_64" or shutil.which("c++") is None:
        pytest.skip("stand-ins for ROCm libraries need a C++ compiler and x86-64")
    folder.mkdir(parents=True, exist_ok=True)
    needs = needs_of(provider)
    wanted: dict[str, list[Wanted]] = defaultdict(list)
    for symbol in needs.symbols:
        if (soname := library_of(symbol)) is not None:
            wanted[soname].append(symbol)
    sonames = [soname for soname in needs.sonames if not soname.startswith(_SYSTEM)]
    for soname in sorted(sonames, key=lambda one: one != HIP):
        _compile(folder, soname, wanted[soname], [folder / HIP] if soname == MIGRAPHX else [])
    return folder


def _source(soname: str, symbols: Sequence[Wanted]) -> str:
    names = [symbol.name for symbol in symbols]
    if soname == HIP:
        return _FORWARDING.format(functions=" ".join(f"F({name})" for name in names))
    if soname == MIGRAPHX:
        toy = (HERE / "migraphx_toy.cc").read_text(encoding="utf-8")
        return toy + "\n".join(f'extern "C" {_failing(name)}' for name in names if f" {name}(" not in toy)
    return "\n".join(
        f"int {name}(void** handle) {{ static int one; *handle = &one; return 0; }}"
        if name.endswith("Create")
        else f"int {name}(void) {{ return 0; }}"
        if name.endswith(_HANDLES)
        else _failing(name)
        for name in names
    )


def _failing(name: str) -> str:
    if name.endswith("ErrorString"):
        return f'const char* {name}(void) {{ return "a stand-in computes nothing"; }}'
    return f"int {name}(void) {{ return 1; }}"


def _compile(folder: Path, soname: str, symbols: Sequence[Wanted], linked: Sequence[Path]) -> None:
    versions: dict[str | None, list[str]] = defaultdict(list)
    for symbol in symbols:
        versions[symbol.version].append(symbol.name)
    language = "c++" if soname == MIGRAPHX else "c"
    source, script = folder / f"{soname}.source", folder / f"{soname}.map"
    source.write_text(_source(soname, symbols), encoding="utf-8")
    nodes = [
        f"{version or ''} {{ global: {' '.join(f'{name};' for name in names)} }};"
        for version, names in versions.items()
    ]
    script.write_text("\n".join(nodes), encoding="utf-8")
    flags = ["-O1", "-w", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", str(folder / soname)]
    if symbols:
        flags.append(f"-Wl,--version-script={script}")
    inputs = ["-x", language, str(source), "-x", "none", *map(str, linked), "-ldl"]
    done = subprocess.run(["c++", *flags, *inputs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
