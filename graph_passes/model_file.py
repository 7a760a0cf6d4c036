"""Reading and writing model files without touching the weights.

Weights in external data stay on disk: loading maps nothing, and a saved model refers to the same data file. In another
folder that file is copied. A hard link would save the space, and ONNX Runtime reads through it, but `onnx.load` and
`onnx.checker` (1.23) refuse a data file with two links as a possible attack, in the *original* folder too; so links are
made on request only. Every file is written under a temporary name and renamed, so that a failure leaves neither half a
model nor a stray data file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Literal

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError, EncodeError
from onnx_ir import external_data

from .errors import ModelFileError

DataFiles = Literal["link", "copy"]


def load(path: str | os.PathLike[str]) -> ir.Model:
    """Read an ONNX model; external data is checked to be there and is not read.

    Raises ModelFileError: no such file, no ONNX model, truncated, or external data missing or too short.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{file}: cannot be read: {_why(error)}") from error
    try:
        proto = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise ModelFileError(
            f"{file}: expected an ONNX model, got something else or a truncated file"
        ) from error
    if not proto.HasField("graph") or not proto.opset_import:
        raise ModelFileError(
            f"{file}: expected an ONNX model, got a file of {len(content)} bytes without a graph"
        )
    try:
        model = ir.serde.deserialize_model(proto)
    except Exception as error:  # onnx_ir passes on whatever a malformed field raises
        raise ModelFileError(f"{file}: the model is malformed: {_first_line(error)}") from error
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        external_data.set_base_dir(graph, file.parent)
    _check_data(file, model)
    return model


def save(model: ir.Model, path: str | os.PathLike[str], data_files: DataFiles = "copy") -> None:
    """Write `model` to `path`, and its external data files beside it unless they are there already.

    data_files: for another folder, "copy", or "link" for a hard link (a copy where the file system has none).
    Raises ModelFileError: the target cannot be written, a different data file is in the way, or the model without
    its external data exceeds the 2 GB of a protobuf. Nothing is left behind then.
    """
    file = Path(path)
    try:
        content = ir.serde.serialize_model(model).SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ModelFileError(
            f"{file}: the model cannot be written: {_first_line(error)}; weights beyond 2 GB must be external data"
        ) from error
    made: list[Path] = []
    try:
        for location, source in _data_files(model).items():
            _place_data(file, location, source, data_files, made)
        _write(file, content)
    except OSError as error:
        _remove(made)
        raise ModelFileError(f"{file}: cannot be written: {_why(error)}") from error
    except ModelFileError:
        _remove(made)
        raise


def _external(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                yield value.const_value
        for node in graph:
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.TENSOR and isinstance(
                    attribute.value, ir.ExternalTensor
                ):
                    yield attribute.value


def _data_files(model: ir.Model) -> dict[str, Path]:
    """Location as the model writes it -> the file it is now."""
    return {os.fspath(held.location): Path(held.path) for held in _external(model)}


def _check_data(file: Path, model: ir.Model) -> None:
    ends: dict[Path, int] = {}
    for held in _external(model):
        length = held.length if held.length is not None else held.nbytes
        data = Path(held.path)
        ends[data] = max(ends.get(data, 0), (held.offset or 0) + length)
    for data, end in ends.items():
        try:
            size = data.stat().st_size
        except OSError as error:
            raise ModelFileError(f"{file}: its external data {data} cannot be read: {_why(error)}") from error
        if size < end:
            raise ModelFileError(
                f"{file}: its external data {data}: expected at least {end} bytes, got {size}"
            )


def _place_data(file: Path, location: str, source: Path, how: DataFiles, made: list[Path]) -> None:
    inside = PurePath(location)
    if inside.is_absolute() or ".." in inside.parts:
        if file.parent.resolve() == source.parent.resolve():
            return
        raise ModelFileError(
            f"{file}: external data {location} lies outside the model's folder; move it there first"
        )
    target = file.parent / inside
    if target.exists():
        if target.samefile(source) or _is_copy(target, source):
            return
        raise ModelFileError(
            f"{target}: is in the way, a different file than {source}; choose another folder"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(target)
    made.append(temporary)
    if how == "copy" or not _linked(source, temporary):
        shutil.copy2(source, temporary)
    temporary.replace(target)
    made[-1] = target


def _linked(source: Path, target: Path) -> bool:
    try:
        target.hardlink_to(source.resolve())
    except OSError:  # another file system, or one without links
        return False
    return True


def _is_copy(target: Path, source: Path) -> bool:
    """Left by an earlier run: `shutil.copy2` keeps the time stamp."""
    one, other = target.stat(), source.stat()
    return one.st_size == other.st_size and one.st_mtime_ns == other.st_mtime_ns


def _write(file: Path, content: bytes) -> None:
    temporary = _temporary(file)
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _temporary(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def _remove(files: list[Path]) -> None:
    for one in files:
        one.unlink(missing_ok=True)


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
