"""The code objects that are built with the package, by name: "selfcheck" is selfcheck.co."""

from __future__ import annotations

from pathlib import Path

from zyfa_ort.kernels.errors import KernelError


class MissingCodeObjectError(KernelError):
    """No code object of this name was built."""


def names() -> list[str]:
    """The code objects there are."""
    return sorted({file.stem for folder in __path__ for file in Path(folder).glob("*.co")})


def path(name: str) -> Path:
    """Where the code object is. Raises MissingCodeObjectError."""
    # An editable install has two folders: the sources and what was built from them.
    for folder in __path__:
        if (found := Path(folder) / f"{name}.co").is_file():
            return found
    there = ", ".join(names()) or "none, reinstall with 'pip install .'"
    raise MissingCodeObjectError(
        f"code object '{name}': expected {name}.co among the built ones, found {there}"
    )


def load(name: str) -> bytes:
    """The contents of the code object. Raises MissingCodeObjectError."""
    return path(name).read_bytes()
