"""A program in one file: a zip archive with a manifest, MIGraphX's files of the segments, and constants of our nodes."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zyfa_ort.errors import MigraphxError
from zyfa_ort.graph_passes.data_files import temporary_name
from zyfa_ort.migraphx import gpu, segment
from zyfa_ort.migraphx.compiling import make_node
from zyfa_ort.migraphx.direct import Gpu
from zyfa_ort.migraphx.program import Program
from zyfa_ort.migraphx.segment import create_target
from zyfa_ort.migraphx.steps import SegmentStep, Signature, Step, described
from zyfa_ort.migraphx.tensor_type import TensorType

FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"


def write(program: Program, path: str | os.PathLike[str]) -> None:
    """Raises MigraphxError: the file cannot be written."""
    file = Path(path)
    temporary = temporary_name(file)
    try:
        with zipfile.ZipFile(temporary, "x") as archive, tempfile.TemporaryDirectory() as folder:
            archive.writestr(_MANIFEST, json.dumps(_manifest(program), indent=1))
            for at, array in enumerate(program.constants.values()):
                archive.writestr(_constant(at), array.tobytes())
            for step in program.steps:
                if isinstance(step, SegmentStep):
                    step.program.save(Path(folder) / _saved(step.name))
                    archive.write(Path(folder) / _saved(step.name), _saved(step.name))
                    (Path(folder) / _saved(step.name)).unlink()
        temporary.replace(file)
    except OSError as error:
        raise MigraphxError(f"{file}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Program:
    """A program that `Program.save` has written, for the same version of MIGraphX and the same kind of GPU.

    Raises:
        MigraphxError: no such file, a damaged one, one of another version, or for another GPU than this machine has.
    """
    file = Path(path)
    with _opened(file) as archive:
        manifest = _read_manifest(file, archive)
        opened = None
        if manifest["target"] == "gpu":
            opened = _checked_gpu(file, manifest)
        else:
            create_target(manifest["target"])
        signature = Signature(
            tuple(manifest["inputs"]),
            tuple(manifest["outputs"]),
            {name: TensorType.read(written) for name, written in manifest["values"].items()},
        )
        constants = {
            name: _read_constant(archive.read(_constant(at)), signature.values[name])
            for at, name in enumerate(manifest["constants"])
        }
        with tempfile.TemporaryDirectory() as folder:
            steps = [_step(archive, Path(folder), one, signature, opened) for one in manifest["steps"]]
    return Program(manifest["target"], opened, steps, signature, constants)


def _manifest(program: Program) -> dict[str, Any]:
    signature = program.signature
    return {
        "format": FORMAT,
        "zyfa_ort": _own_version(),
        "target": program.target,
        "architecture": None if program.gpu is None else program.gpu.architecture,
        "inputs": list(signature.inputs),
        "outputs": list(signature.outputs),
        "values": {name: kind.written() for name, kind in signature.values.items()},
        "constants": list(program.constants),
        "steps": [described(step) for step in program.steps],
    }


def _own_version() -> str:
    try:
        return version("zyfa-ort")
    except PackageNotFoundError:  # run from its sources
        return "not installed"


def _saved(segment_name: str) -> str:
    return f"{segment_name.replace(' ', '_')}.mxr"


def _constant(at: int) -> str:
    return f"constant_{at}.bin"


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except OSError as error:
        raise MigraphxError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise MigraphxError(
            f"{file}: expected a program that Program.save wrote, got a damaged file: {error}"
        ) from error


def _read_manifest(file: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(archive.read(_MANIFEST))
    if manifest["format"] != FORMAT:
        raise MigraphxError(
            f"{file}: expected format {FORMAT}, got {manifest['format']} of zyfa_ort {manifest['zyfa_ort']}; compile again"
        )
    return manifest


def _checked_gpu(file: Path, manifest: Mapping[str, Any]) -> Gpu:
    found = gpu.open_gpu()
    if found.architecture != manifest["architecture"]:
        raise MigraphxError(
            f"{file}: expected a GPU of architecture {manifest['architecture']}, got {found.architecture}; compile again"
        )
    return found


def _read_constant(content: bytes, kind: TensorType) -> NDArray[Any]:
    return np.frombuffer(content, kind.dtype).reshape(kind.shape).copy()


def _step(
    archive: zipfile.ZipFile,
    folder: Path,
    written: Mapping[str, Any],
    signature: Signature,
    opened: Gpu | None,
) -> Step:
    name = written["name"]
    inputs, outputs = tuple(written["inputs"]), tuple(written["outputs"])
    if written["kind"] == "node":
        return make_node(written["op"], name, written["attributes"], inputs, outputs, signature, opened)
    archive.extract(_saved(name), folder)
    program = segment.Program.load(folder / _saved(name))
    (folder / _saved(name)).unlink()
    return SegmentStep(name, inputs, outputs, program, program.parameters())
