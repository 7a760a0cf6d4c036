"""Reading and writing model files without touching the weights.

Weights in external data stay on disk (`data_files`); a saved model refers to the same data file, or to a copy of it in
another folder. Every file is written under a temporary name and renamed, so that a failure leaves the target as it was
and nothing else: no half of a model, no stray data file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError, EncodeError

from . import data_files
from .data_files import ExternalData, kind, why
from .errors import ModelFileError

PROTOBUF_LIMIT: Final = (1 << 31) - 1
LOST: Final = "ai.zyfa.lost"  # in the model's meta: what a writer of dense tensors leaves out


def load(path: str | os.PathLike[str]) -> ir.Model:
    """Read an ONNX model; external data is checked to be there and is not read.

    Raises ModelFileError: no such file, no ONNX model, truncated, or external data is missing, too short or outside the
    model's folder.
    """
    file = Path(path)
    proto = _parse(file, _content(file))
    try:
        model = ir.serde.deserialize_model(proto)
    except Exception as error:  # onnx_ir passes on whatever a malformed field raises
        raise ModelFileError(f"{file}: the model is malformed: {_first_line(_origin(error))}") from error
    data_files.settle(file, model)
    model.meta[LOST] = _unwritable(proto)
    return model


def _content(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if file.is_file() and size <= PROTOBUF_LIMIT:
            return file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{file}: cannot be read: {why(error)}") from error
    if not file.is_file():
        raise ModelFileError(f"{file}: expected an ONNX model, got {kind(file)}")
    raise ModelFileError(
        f"{file}: expected an ONNX model of at most {PROTOBUF_LIMIT} bytes, got {size}; is it the external data?"
    )


def _parse(file: Path, content: bytes) -> onnx.ModelProto:
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        got = f"something else or a truncated file ({len(content)} bytes)"
        raise ModelFileError(f"{file}: expected an ONNX model, got {got}") from error
    if not proto.HasField("graph") or not proto.opset_import:
        missing = "opset" if proto.HasField("graph") else "graph"
        raise ModelFileError(
            f"{file}: expected an ONNX model, got a file of {len(content)} bytes without {missing}"
        )
    return proto


def _unwritable(proto: onnx.ModelProto) -> str:
    """What onnx_ir (1.1) would silently leave out of the written model."""
    return "training info" if proto.training_info else _sparse(proto.graph)


def _sparse(graph: onnx.GraphProto) -> str:
    if graph.sparse_initializer:
        return f"the sparse initializer {graph.sparse_initializer[0].values.name}"
    bodies: Iterable[onnx.GraphProto] = (
        body
        for node in graph.node
        for attribute in node.attribute
        for body in ((attribute.g,) if attribute.HasField("g") else attribute.graphs)
    )
    return next((lost for body in bodies if (lost := _sparse(body))), "")


def check_target(
    model: ir.Model, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None
) -> None:
    """Refuse what `save` could not write, or only over its own `source`, before any work is done for it.

    Raises ModelFileError: the folder is missing, the target is a folder, a device, the source or its external data, or the
    model was read with parts that cannot be written back.
    """
    file = Path(path)
    if model.meta.get(LOST):
        raise ModelFileError(f"{file}: cannot be written: {model.meta[LOST]} of the model would be lost")
    if not file.parent.is_dir():
        got = "a file" if file.parent.exists() else "none"
        raise ModelFileError(f"{file}: expected an existing folder {file.parent}, got {got}")
    if file.exists() and not file.is_file():
        # Renaming onto it would replace /dev/null by a file.
        raise ModelFileError(f"{file}: expected the name of a file, got {kind(file)}")
    if source is not None and file.exists() and file.samefile(source):
        raise ModelFileError(f"{file}: expected another file than the model that is read, got the same")
    data_files.check_places(file, model)


def save(model: ir.Model, path: str | os.PathLike[str], external_data: ExternalData = "copy") -> None:
    """Write `model` to `path`, and see to its external data.

    external_data: what to do in another folder than the data's: "copy", make a "hardlink", or "reference" only data that
    is there already. In the data's own folder the model always refers to the same file.
    Raises ModelFileError: the target cannot be written, a different data file is in the way, `external_data` is
    impossible, or the model without its external data exceeds the 2 GB of a protobuf. Nothing is changed then.
    """
    file = Path(path)
    data_files.check_choice(external_data)
    check_target(model, file)
    try:
        content = ir.serde.serialize_model(model).SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ModelFileError(
            f"{file}: the model cannot be written: {_first_line(error)}; weights beyond 2 GB must be external data"
        ) from error
    made: list[Path] = []
    try:
        data_files.place(file, model, external_data, made)
        _write(file, content, made)
    except BaseException as error:  # an interrupted copy leaves no part behind either
        data_files.remove(made)
        if isinstance(error, OSError):
            raise ModelFileError(f"{file}: cannot be written: {why(error)}") from error
        raise


def _write(file: Path, content: bytes, made: list[Path]) -> None:
    temporary = data_files.temporary_name(file)
    made.append(temporary)
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)


def _origin(error: BaseException) -> BaseException:
    """onnx_ir wraps an error once per level of the model."""
    while (deeper := error.__cause__ or error.__context__) is not None:
        error = deeper
    return error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
