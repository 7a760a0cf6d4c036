"""External data: which files a model's weights lie in, whether they are all there, and putting them beside a copy.

A fused model keeps the names and offsets that its source wrote, so the same bytes serve both. ONNX allows no data
outside the model's folder, and ONNX Runtime (1.32) refuses links that lead out of it; hard links it reads. `onnx` (1.23)
and onnx_ir (1.1) refuse a data file with two hard links as a possible attack, in the *original* folder too, so links are
made on request only. Nothing here writes or executes what it reads, so this room reads through links of any kind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final, Literal, get_args

import onnx_ir as ir

from .errors import GraphPassError, ModelFileError
from .sites import bodies

ExternalData = Literal["copy", "hardlink", "reference"]

CHUNK: Final = 8 << 20


def external_tensors(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    """Every tensor of `model` that lies in a data file: of graphs, their bodies, and functions."""
    yield from _in_graph(model.graph)
    for function in model.functions.values():
        yield from _in_nodes(function)


def _in_graph(graph: ir.Graph) -> Iterator[ir.ExternalTensor]:
    for value in graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            yield value.const_value
    yield from _in_nodes(graph)


def _in_nodes(nodes: Iterable[ir.Node]) -> Iterator[ir.ExternalTensor]:
    for node in nodes:
        for attribute in node.attributes.values():
            for body in bodies(attribute):
                yield from _in_graph(body)
            for held in _tensors(attribute):
                if isinstance(held, ir.ExternalTensor):
                    yield held


def _tensors(attribute: ir.Attr) -> Iterable[object]:
    if attribute.is_ref():
        return ()
    if attribute.type == ir.AttributeType.TENSOR:
        return (attribute.value,)
    return attribute.as_tensors() if attribute.type == ir.AttributeType.TENSORS else ()


def follow_link(held: ir.ExternalTensor) -> None:
    """Let onnx_ir read a tensor although its data file is a link: without a folder there is none that it could leave.

    For models that get data files of their own: written as it is, the tensor would refer to an absolute path.
    """
    held._location, held.base_dir = held.path, ""


def settle(file: Path, model: ir.Model) -> None:
    """Say where the external data of the model read from `file` is, and check that it is all there.

    Raises ModelFileError: a file is missing or too short, an entry contradicts its tensor or leaves the folder.
    """
    folder = file.parent.absolute()  # the caller may change the working directory before it saves
    ends: dict[Path, int] = {}
    for held in external_tensors(model):
        where = f"{file}: external data of {held.name}"
        inside = PurePath(held.location)
        if inside.is_absolute() or ".." in inside.parts:
            raise ModelFileError(f"{where}: expected a path inside the model's folder, got {held.location}")
        if held.length is not None and held.length != held.nbytes:
            raise ModelFileError(f"{where}: expected {held.nbytes} bytes for its shape, got {held.length}")
        held.base_dir = folder
        data = Path(held.path)
        ends[data] = max(ends.get(data, 0), (held.offset or 0) + held.nbytes)
    for data, end in ends.items():
        _check_size(file, data, end)


def _check_size(file: Path, data: Path, end: int) -> None:
    where = f"{file}: external data {data}"
    if data.exists() and not data.is_file():
        raise ModelFileError(f"{where}: expected a file, got {kind(data)}")
    try:
        with data.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
    except OSError as error:
        raise ModelFileError(f"{where}: cannot be read: {why(error)}") from error
    if size < end:
        raise ModelFileError(f"{where}: expected at least {end} bytes, got {size}; is the download complete?")


def sources(model: ir.Model) -> dict[str, Path]:
    """Location as the model writes it -> the file it is now."""
    return {os.fspath(held.location): Path(held.path) for held in external_tensors(model)}


def check_places(file: Path, model: ir.Model) -> None:
    """Refuse to write the model to `file` when that is, or would be, one of its data files."""
    for location, source in sources(model).items():
        if file.exists() and source.exists() and file.samefile(source):
            raise ModelFileError(f"{file}: expected a file to write the model to, got its external data")
        if PurePath(location) == PurePath(file.name):
            raise ModelFileError(
                f"{file}: expected another name than that of the external data, got {location}"
            )


def check_choice(how: str) -> None:
    """Raises GraphPassError for a word that is no `ExternalData`."""
    if how not in get_args(ExternalData):
        words = ", ".join(repr(word) for word in get_args(ExternalData))
        raise GraphPassError(f"external_data: expected one of {words}, got {how!r}")


def place(file: Path, model: ir.Model, how: ExternalData, made: list[Path]) -> None:
    """Put the data files where a model in `file` will look for them; notes in `made` what it puts there.

    how: "copy" or "hardlink" what is not there yet, or "reference" only what is.
    Raises ModelFileError: a different file is in the way, or `how` is impossible. OSError: from the file system.
    """
    for location, source in sources(model).items():
        target = file.parent / location
        if target.exists():
            if target.samefile(source) or _same_bytes(target, source):
                continue
            raise ModelFileError(
                f"{target}: expected no file or the same as {source}, got another; remove it or choose another folder"
            )
        if how == "reference":
            raise ModelFileError(
                f"{file}: expected its external data {location} in the same folder, got it at {source}; "
                "ONNX allows no data outside: write the model to that folder, or copy or hardlink the data"
            )
        _bring(source, target, how, made)


def _bring(source: Path, target: Path, how: ExternalData, made: list[Path]) -> None:
    for folder in reversed([one for one in target.parents if not one.exists()]):
        made.append(folder)
        folder.mkdir()
    temporary = temporary_name(target)
    made.append(temporary)
    if how == "copy":
        _copy(source, temporary)
    else:
        _link(source, temporary, target)
    temporary.replace(target)
    made[-1] = target


def _copy(source: Path, target: Path) -> None:
    shutil.copy2(source, target)
    with target.open("rb") as stream:
        os.fsync(stream.fileno())


def _link(source: Path, temporary: Path, target: Path) -> None:
    real = source.resolve()
    try:
        temporary.hardlink_to(real)
    except OSError as error:
        raise ModelFileError(
            f"{target}: expected a folder that can hold a hard link to {real}, got: {why(error)}; use copy"
        ) from error


def _same_bytes(one: Path, other: Path) -> bool:
    """Whether a file is the copy an earlier run left. Size and time do not tell: archives of different weights of one
    architecture unpack with equal ones."""
    if not one.is_file() or one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        while chunk := left.read(CHUNK):
            if chunk != right.read(CHUNK):
                return False
    return True


def remove(made: Iterable[Path]) -> None:
    """Take away files and folders that a failed run put there, last first."""
    for one in reversed(list(made)):
        with contextlib.suppress(OSError):  # the error that is already under way says more
            if one.is_dir():
                one.rmdir()
            else:
                one.unlink()


def temporary_name(target: Path) -> Path:
    """A name in the folder of `target`, short whatever its own length."""
    return target.with_name(f".zyfa-{os.getpid()}-{threading.get_ident()}.tmp")


def kind(path: Path) -> str:
    """What an existing path that is no regular file is, in words."""
    return "a folder" if path.is_dir() else "a device or pipe"


def why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
