"""Model files that cannot be read, targets that cannot be written: one line each, and nothing changed on disk."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from zyfa_ort.graph_passes import model_file
from zyfa_ort.graph_passes.errors import GraphPassError, ModelFileError

import zyfa_ort
from graph_passes.on_disk import DATA, external, listing, read, two_layers, write

NOBODY = 65534
PATH = "model.onnx"


@contextmanager
def refused(message: str, folder: Path) -> Iterator[None]:
    """A ModelFileError of this one line (a regular expression), and no change in `folder`."""
    before = listing(folder)
    with pytest.raises(ModelFileError) as caught:
        yield
    assert re.fullmatch(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)
    assert listing(folder) == before


def fuse(source: Path, target: Path, **options: object) -> zyfa_ort.FuseReport:
    return zyfa_ort.fuse(source, target, precision="fp32", **options)


# --- sources --------------------------------------------------------------------------------------------------------------


def sparse() -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.ones(1, np.float32), "odd")
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([2])), [5])


def edited(edit: Callable[[onnx.ModelProto], object]) -> bytes:
    model = two_layers()
    edit(model)
    return model.SerializeToString()


def with_body(model: onnx.ModelProto) -> None:
    body = helper.make_graph([], "body", [], [], sparse_initializer=[sparse()])
    model.graph.node.append(helper.make_node("If", ["c"], ["o"], then_branch=body, else_branch=body))


WHOLE = two_layers().SerializeToString()
WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "expected an ONNX model, got a file of 0 bytes without graph"),
    "text": (b"not a model", r"expected an ONNX model, got something else or a truncated file \(11 bytes\)"),
    "half": (WHOLE[: len(WHOLE) // 2], r"expected an ONNX model, got .* a truncated file \(\d+ bytes\)"),
    "another protobuf": (
        numpy_helper.from_array(np.zeros(3, np.float32)).SerializeToString(),
        "expected an ONNX model, got .*",
    ),
    "no opset": (
        edited(lambda model: model.ClearField("opset_import")),
        r"expected an ONNX model, got a file of \d+ bytes without opset",
    ),
    "unknown type": (
        edited(lambda model: setattr(model.graph.initializer[0], "data_type", 99)),
        "the model is malformed: .*",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_source_that_is_no_model(case: str, tmp_path: Path) -> None:
    content, message = WRONG[case]
    source = tmp_path / PATH
    source.write_bytes(content)
    for run in (zyfa_ort.inspect, lambda path: fuse(path, tmp_path / "out.onnx")):
        with refused(f"{source}: {message}", tmp_path):
            run(source)


LOST: dict[str, tuple[Callable[[onnx.ModelProto], object], str]] = {
    "training": (lambda model: model.training_info.add(), "training info"),
    "sparse": (lambda model: model.graph.sparse_initializer.append(sparse()), "the sparse initializer odd"),
    "sparse in a body": (with_body, "the sparse initializer odd"),
}


@pytest.mark.parametrize("case", LOST)
def test_parts_that_would_be_lost(case: str, tmp_path: Path) -> None:
    """onnx_ir leaves them out in silence: such a model can be looked at, and is not written."""
    edit, what = LOST[case]
    source, target = tmp_path / PATH, tmp_path / "out.onnx"
    source.write_bytes(edited(edit))
    assert zyfa_ort.inspect(source).fused == 2
    with refused(f"{target}: cannot be written: {what} of the model would be lost", tmp_path):
        fuse(source, target)


def test_a_source_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # would be waited for
    for name, message in (
        ("nowhere", "cannot be read: no such file or directory"),
        ("pipe", "expected an ONNX model, got a device or pipe"),
        ("", "expected an ONNX model, got a folder"),
    ):
        source = tmp_path / name
        with refused(f"{source}: {message}", tmp_path):
            model_file.load(source)


def test_the_data_file_in_place_of_the_model(tmp_path: Path) -> None:
    """Beyond the limit of a protobuf nothing is read."""
    source = tmp_path / "model.onnx_data"
    source.touch()
    os.truncate(source, 3 << 30)
    wanted = f"{source}: expected an ONNX model of at most 2147483647 bytes, got 3221225472; is it the external data?"
    with pytest.raises(ModelFileError) as caught:
        model_file.load(source)
    assert str(caught.value) == wanted


def test_every_cut_of_a_model_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / PATH
    for end in {*range(0, len(WHOLE), 97), *range(len(WHOLE) - 40, len(WHOLE))}:
        source.write_bytes(WHOLE[:end])
        with pytest.raises(ModelFileError):
            model_file.load(source)
    source.write_bytes(WHOLE)
    assert len(list(model_file.load(source).graph)) == len(two_layers().graph.node)


# --- external data --------------------------------------------------------------------------------------------------------


def entry(model: onnx.ModelProto, key: str, value: str) -> None:
    """Change one entry of the first tensor in a data file."""
    tensor, where = next(external(model))
    del tensor.external_data[:]
    for name, held in ({**where, key: value}).items():
        tensor.external_data.add(key=name, value=held)


LEAVES = "external data of constant_0: expected a path inside the model's folder, got "
ENTRIES = {
    "above": ("location", "../weights.bin", LEAVES + "../weights.bin"),
    "absolute": ("location", "/etc/hostname", LEAVES + "/etc/hostname"),
    "up and down": ("location", "a/../weights.bin", LEAVES + "a/../weights.bin"),
    "length": ("length", "3", r"external data of constant_0: expected \d+ bytes for its shape, got 3"),
    "offset": ("offset", "-8", "the model is malformed: .*-8.*"),
    "no number": ("offset", "here", "the model is malformed: .*'here'.*"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_external_data_that_contradicts_itself_or_leaves_the_folder(case: str, tmp_path: Path) -> None:
    key, value, message = ENTRIES[case]
    source = write(tmp_path / "in" / PATH)
    shutil.copy(source.with_name(DATA), tmp_path / DATA)
    model = read(source)
    entry(model, key, value)
    source.write_bytes(model.SerializeToString())
    with refused(f"{source}: {message}", tmp_path):
        fuse(source, tmp_path / "out.onnx")


@pytest.mark.parametrize("what", ["missing", "too short", "a folder", "empty"])
def test_external_data_that_is_not_all_there(what: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in" / PATH)
    model = read(source)
    model.graph.initializer.reverse()  # the tensor that ends last does not come last
    source.write_bytes(model.SerializeToString())
    data = source.with_name(DATA)
    size = data.stat().st_size
    if what in ("missing", "a folder"):
        data.unlink()
    if what == "a folder":
        data.mkdir()
    elif what != "missing":
        os.truncate(data, size - 1 if what == "too short" else 0)
    message = {
        "missing": "cannot be read: no such file or directory",
        "a folder": "expected a file, got a folder",
        "too short": rf"expected at least {size} bytes, got {size - 1}; is the download complete\?",
        "empty": rf"expected at least {size} bytes, got 0; is the download complete\?",
    }[what]
    with refused(f"{source}: external data {data}: {message}", tmp_path):
        fuse(source, tmp_path / "out.onnx")


# --- targets --------------------------------------------------------------------------------------------------------------


def test_the_target_is_the_source(tmp_path: Path) -> None:
    """Under its own name, another spelling, a symbolic and a hard link."""
    source = write(tmp_path / PATH)
    (tmp_path / "symbolic.onnx").symlink_to(source)
    os.link(source, tmp_path / "hard.onnx")
    for name in (PATH, f"../{tmp_path.name}/{PATH}", "symbolic.onnx", "hard.onnx"):
        target = tmp_path / name
        wanted = f"{target}: expected another file than the model that is read, got the same"
        with refused(wanted, tmp_path):
            fuse(source, target)


def test_the_target_is_external_data(tmp_path: Path) -> None:
    source = write(tmp_path / "in" / PATH)
    (tmp_path / "out").mkdir()
    in_use = "expected a file to write the model to, got its external data"
    named_alike = f"expected another name than that of the external data, got {DATA}"
    for folder, message in (("in", in_use), ("out", named_alike)):
        target = tmp_path / folder / DATA
        with refused(f"{target}: {message}", tmp_path):
            fuse(source, target)


def test_the_target_is_no_file(tmp_path: Path) -> None:
    """A rename onto /dev/null, say, would replace the device."""
    source = write(tmp_path / PATH)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, message in (
        ("folder", "expected the name of a file, got a folder"),
        ("pipe", "expected the name of a file, got a device or pipe"),
        ("nowhere/out.onnx", f"expected an existing folder {tmp_path / 'nowhere'}, got none"),
        (f"{PATH}/out.onnx", f"expected an existing folder {source}, got a file"),
    ):
        target = tmp_path / name
        with refused(f"{target}: {message}", tmp_path):
            fuse(source, target)
        with refused(f"{target}: {message}", tmp_path):
            model_file.save(model_file.load(source), target)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user who may not write everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("name", [PATH, DATA])
def test_a_source_that_may_not_be_read(name: str, open_folder: Path) -> None:
    source = write(open_folder / PATH)
    (open_folder / DATA).chmod(0o644)
    (open_folder / name).chmod(0)
    what = f"{source}:" if name == PATH else f"{source}: external data {open_folder / DATA}:"
    with refused(f"{what} cannot be read: permission denied", open_folder), unprivileged():
        model_file.load(source)


@pytest.mark.parametrize("data", ["inside", "one file"])
def test_a_folder_that_may_not_be_written(data: str, open_folder: Path) -> None:
    source = write(open_folder / "in" / PATH, data)
    for one in source.parent.iterdir():
        one.chmod(0o644)
    folder = open_folder / "out"
    folder.mkdir()
    (folder / "old.onnx").write_bytes(b"old")
    folder.chmod(0o555)
    for name in ("new.onnx", "old.onnx"):
        target = folder / name
        with refused(f"{target}: cannot be written: permission denied", open_folder), unprivileged():
            fuse(source, target)
    folder.chmod(0o755)


@pytest.mark.parametrize("old", [None, b"an older model"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["copy", "write"])
def test_a_failure_half_way_leaves_nothing(
    step: str,
    error: BaseException,
    old: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the data is copied, and after that while the model is written."""
    source = write(tmp_path / "in" / PATH)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / PATH
    if old:
        target.write_bytes(old)

    def half(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:1000])
        raise error

    size = source.with_name(DATA).stat().st_size

    def sync(number: int) -> None:
        if os.stat(number).st_size != size:  # the data is done
            raise error

    if step == "copy":
        monkeypatch.setattr(shutil, "copy2", half)
    else:
        monkeypatch.setattr(os, "fsync", sync)
    before = listing(tmp_path)
    kind = ModelFileError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(kind) as caught:
        fuse(source, target)
    if kind is ModelFileError:
        assert str(caught.value) == f"{target}: cannot be written: no space left on device"
    assert listing(tmp_path) == before


def test_an_unknown_word_is_refused_first(tmp_path: Path) -> None:
    wanted = r"^external_data: expected one of 'copy', 'hardlink', 'reference', got 'move'$"
    with pytest.raises(GraphPassError, match=wanted):
        fuse(tmp_path / "nowhere", tmp_path / "out.onnx", external_data="move")


def test_a_long_name_and_an_existing_file(tmp_path: Path) -> None:
    """255 bytes, the most that file systems take; what was there is replaced."""
    source = write(tmp_path / PATH, "inside")
    target = tmp_path / ("n" * 250 + ".onnx")
    target.write_bytes(b"old")
    assert fuse(source, target).fused == 2
    onnx.checker.check_model(target)
    assert sorted(listing(tmp_path)) == sorted([PATH, target.name])
