"""Who may import whom: the arrows between the rooms, for Python and for C++."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Room -> packages of the project that it may import (besides itself).
PYTHON_ARROWS = {
    "zyfa_ort": {"zyfa_ort", "zyfa_ort.graph_passes", "zyfa_ort.kernels"},
    "graph_passes": {"zyfa_ort.graph_passes"},
    "kernels": {"zyfa_ort.kernels"},
}
# Parts of one room that never see each other: machine code is all that passes between the generator and the emulator,
# so that each can prove the other wrong.
PYTHON_WALLS = {
    "kernels/asm": "zyfa_ort.kernels.emulator",
    "kernels/emulator": "zyfa_ort.kernels.asm",
}
# Third-party packages that only some files of a room may import.
ONLY_IN = {
    ("graph_passes", "onnxruntime"): set(),
    ("zyfa_ort", "torch"): {"zyfa_ort/demo/checkpoint.py", "zyfa_ort/demo/export.py", "zyfa_ort/export.py"},
    ("zyfa_ort", "onnxscript"): {"zyfa_ort/export.py"},
    ("zyfa_ort", "transformers"): {"zyfa_ort/demo/checkpoint.py", "zyfa_ort/demo/export.py"},
}
# Folder of custom_ops -> what its #include lines must not match.
CPP_WALLS = {
    "custom_ops/problem.hpp": r"onnxruntime|hip|ops/|cpu/|ep/",
    "custom_ops/problem.cc": r"onnxruntime|hip|ops/|cpu/|ep/",
    "custom_ops/cpu": r"onnxruntime|ops/|ep/|hip/",
    "custom_ops/hip": r"onnxruntime|ops/|cpu/|ep/",
    "custom_ops": r"kernels/|emulator",
    "kernels/emulator": r"onnxruntime|custom_ops|ops/|cpu/|ep/|asm/",
    "kernels/hip": r"hip/|emulator|custom_ops|<",
}


def python_files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    package = path.relative_to(ROOT).parts[:-1]
    if package[0] != "zyfa_ort":
        package = ("zyfa_ort", *package)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def project_room(module: str) -> str:
    for room in ("zyfa_ort.graph_passes", "zyfa_ort.kernels"):
        if module == room or module.startswith(f"{room}."):
            return room
    return "zyfa_ort"


@pytest.mark.parametrize("room", PYTHON_ARROWS)
def test_python_rooms_import_only_along_the_arrows(room):
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in python_files(room)
        for module in imported_modules(path)
        if module.split(".")[0] == "zyfa_ort" and module != "zyfa_ort"
        if project_room(module) not in PYTHON_ARROWS[room]
    ]
    assert not wrong


@pytest.mark.parametrize("room", PYTHON_WALLS)
def test_generator_and_emulator_never_import_each_other(room):
    files = python_files(room)
    assert files
    behind = PYTHON_WALLS[room]
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files
        for module in imported_modules(path)
        if f"{module}.".startswith(f"{behind}.")
    ]
    assert not wrong


@pytest.mark.parametrize(("room", "package"), ONLY_IN)
def test_packages_that_only_some_files_may_import(room, package):
    importers = {
        path.relative_to(ROOT).as_posix()
        for path in python_files(room)
        for module in imported_modules(path)
        if module.split(".")[0] == package and not under_type_checking(path, package)
    }
    assert importers <= ONLY_IN[room, package]


def under_type_checking(path: Path, package: str) -> bool:
    """Whether every import of the package in the file is one for type checkers only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    imports = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == package for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package)
    ]
    return all(id(node) in guarded for node in imports)


@pytest.mark.parametrize("where", CPP_WALLS)
def test_cpp_rooms_include_only_along_the_arrows(where):
    target = ROOT / where
    files = (
        [target]
        if target.is_file()
        else [p for p in sorted(target.rglob("*")) if p.suffix in {".cc", ".hpp", ".h", ".hip"}]
    )
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#include") and re.search(CPP_WALLS[where], line)
    ]
    assert not wrong


def test_only_ops_and_the_entry_points_see_onnxruntime():
    allowed = ("custom_ops/ops/", "custom_ops/ep/", "custom_ops/library.cc")
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "custom_ops").rglob("*"))
        if path.suffix in {".cc", ".hpp", ".h"}
        and re.search(r"#include <onnxruntime", path.read_text(encoding="utf-8"))
        and not path.relative_to(ROOT).as_posix().startswith(allowed)
    ]
    assert not wrong
