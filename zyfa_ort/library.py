"""Where the compiled custom-op library is, and how ONNX Runtime gets it."""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import TYPE_CHECKING

from zyfa_ort import env
from zyfa_ort.errors import LibraryError

if TYPE_CHECKING:
    import onnxruntime

LIBRARY_NAME = "libzyfa_ort_ops.so"


def library_path() -> str:
    """Path of the shared library, for ``SessionOptions.register_custom_ops_library``.

    ``ZYFA_LIBRARY`` overrides the installed one.

    Raises:
        LibraryError: there is no such file.
    """
    override = env.LIBRARY.get()
    if override is not None:
        path = Path(override)
        if not path.is_file():
            raise LibraryError(
                f"{env.LIBRARY.name}: expected the path of {LIBRARY_NAME}, found no file at {path}"
            )
        return str(path.absolute())  # ONNX Runtime looks for relative ones in its own folder
    installed = importlib.resources.files("zyfa_ort").joinpath("lib", LIBRARY_NAME)
    with importlib.resources.as_file(installed) as path:
        if not path.is_file():
            raise LibraryError(f"{path}: the compiled library is missing, reinstall with 'pip install .'")
        return str(path)


def register(options: onnxruntime.SessionOptions) -> onnxruntime.SessionOptions:
    """Makes the operators of the domain ``ai.zyfa`` known to sessions built from ``options``; returns ``options``.

    Raises:
        LibraryError: the library is missing, or ONNX Runtime cannot load it.
    """
    path = library_path()
    try:
        options.register_custom_ops_library(path)
    except Exception as error:  # the binding raises a different type per cause
        raise LibraryError(f"{path}: ONNX Runtime cannot load this library: {_one_line(error)}") from error
    return options


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
