"""External data of a fused model: the same bytes, found from where the model is written, whatever way was chosen."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference.toy_model import write_toy
from zyfa_ort.graph_passes import data_files, model_file
from zyfa_ort.graph_passes.errors import ModelFileError

import zyfa_ort
from graph_passes.decomposed import hidden_feeds
from graph_passes.graph import Graph
from graph_passes.on_disk import DATA, content, external, listing, read, write
from graph_passes.running import assert_same_numbers, fused_session, original_session

PATH = "model.onnx"
Stored = Literal["one file", "one each"]
HOW = ("copy", "hardlink", "reference")


def fuse(source: Path, target: Path, **options: object) -> zyfa_ort.FuseReport:
    report = zyfa_ort.fuse(source, target, precision="fp32", **options)
    assert report.fused == 2
    return report


def check_runs(source: Path, target: Path) -> None:
    """Both in ONNX Runtime, from their files."""
    wanted = zyfa_ort.run(original_session(source), hidden_feeds())
    got = zyfa_ort.run(fused_session(target), hidden_feeds())
    assert_same_numbers(got["output"], wanted["output"])


def check_weights(source: Path, target: Path) -> None:
    """What is left of the initializers: the same bytes under the same location, offset and length."""
    before, after = (dict((t.name, where) for t, where in external(read(one))) for one in (source, target))
    assert after and all(before[name] == where for name, where in after.items())
    bytes_before, bytes_after = (content(read(one), one.parent) for one in (source, target))
    assert all(bytes_before[name] == stored for name, stored in bytes_after.items())


@pytest.mark.parametrize("stored", ["one file", "one each"])
@pytest.mark.parametrize("how", HOW)
def test_the_same_folder_refers_to_the_same_files(how: str, stored: Stored, tmp_path: Path) -> None:
    source, target = write(tmp_path / PATH, stored), tmp_path / "fused.onnx"
    before = listing(tmp_path)
    fuse(source, target, external_data=how)
    after = listing(tmp_path)
    del after["fused.onnx"]
    assert after == before
    check_weights(source, target)
    check_runs(source, target)


@pytest.mark.parametrize("stored", ["one file", "one each"])
def test_another_folder_gets_a_copy(stored: Stored, tmp_path: Path) -> None:
    """Of the files that are still needed; a second run finds it and writes nothing but the model."""
    source, target = write(tmp_path / "in" / PATH, stored), tmp_path / "out" / "fused.onnx"
    target.parent.mkdir()
    fuse(source, target)
    needed = {where["location"] for _, where in external(read(target))}
    assert set(listing(target.parent)) == {"fused.onnx", *needed}
    for name in needed:
        assert (target.parent / name).read_bytes() == source.with_name(name).read_bytes()
        assert (target.parent / name).stat().st_nlink == 1
    check_weights(source, target)
    check_runs(source, target)
    stamps = {name: (target.parent / name).stat().st_ino for name in needed}
    fuse(source, target)
    assert {name: (target.parent / name).stat().st_ino for name in needed} == stamps
    onnx.load(target)


def test_another_file_in_the_way(tmp_path: Path) -> None:
    """Other weights of the same size and time, as archives of two models of one architecture unpack to."""
    source, target = write(tmp_path / "in" / PATH), tmp_path / "out" / PATH
    data, other = source.with_name(DATA), target.with_name(DATA)
    target.parent.mkdir()
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    other.write_bytes(content)
    for one in (data, other):
        os.utime(one, (0, 0))
    before = listing(tmp_path)
    for how in HOW:
        wanted = f"{other}: expected no file or the same as {data}, got another; remove it or choose another folder"
        with pytest.raises(ModelFileError, match=f"^{re.escape(wanted)}$"):
            fuse(source, target, external_data=how)
        assert listing(tmp_path) == before


def test_hard_links(tmp_path: Path) -> None:
    """One file under two names; ONNX Runtime and this package read both models. onnx and onnx_ir refuse them: if these
    asserts ever fail, docs/cli.md and the docstring of data_files are out of date."""
    source, target = write(tmp_path / "in" / PATH), tmp_path / "out" / PATH
    target.parent.mkdir()
    fuse(source, target, external_data="hardlink")
    assert target.with_name(DATA).samefile(source.with_name(DATA))
    check_weights(source, target)
    check_runs(source, target)
    assert zyfa_ort.inspect(target).already_fused == 2
    assert zyfa_ort.inspect(source).fused == 2
    again = tmp_path / "again"
    again.mkdir()
    fuse(source, again / PATH)  # a copy has one link again
    onnx.load(again / PATH)
    for path in (source, target):
        with pytest.raises(onnx.checker.ValidationError, match="multiple hard links"):
            onnx.load(path)
        with pytest.raises(ValueError, match="multiple hard links"):
            next(iter(ir.load(path).graph.initializers.values())).const_value.numpy()


def test_constants_in_linked_data(tmp_path: Path) -> None:
    """Scales and shape vectors are read, from a hard link too."""
    source, target = write(tmp_path / "in" / PATH, least=0), tmp_path / "out" / PATH
    target.parent.mkdir()
    os.link(source.with_name(DATA), tmp_path / "other")
    report = zyfa_ort.fuse(source, target, external_data="hardlink")
    assert report == zyfa_ort.fuse(write(tmp_path / "plain" / PATH, "inside"), tmp_path / "fused.onnx")
    assert [site.scale for site in report.sites] == [None, None]


def test_a_hard_link_that_is_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To another file system, say. No silent copy in its place."""

    def link(*paths: object, **options: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    source, target = write(tmp_path / "in" / PATH), tmp_path / "out" / PATH
    target.parent.mkdir()
    before = listing(tmp_path)
    monkeypatch.setattr(os, "link", link)
    real = source.with_name(DATA)
    wanted = (
        f"{target.with_name(DATA)}: expected a folder that can hold a hard link to {real}, "
        "got: invalid cross-device link; use copy"
    )
    with pytest.raises(ModelFileError, match=f"^{re.escape(wanted)}$"):
        fuse(source, target, external_data="hardlink")
    assert listing(tmp_path) == before


def test_a_reference_out_of_the_folder(tmp_path: Path) -> None:
    source, target = write(tmp_path / "in" / PATH), tmp_path / "out" / PATH
    target.parent.mkdir()
    before = listing(tmp_path)
    data = source.with_name(DATA)
    wanted = (
        f"{target}: expected its external data {DATA} in the same folder, got it at {data}; "
        "ONNX allows no data outside: write the model to that folder, or copy or hardlink the data"
    )
    with pytest.raises(ModelFileError, match=f"^{re.escape(wanted)}$"):
        fuse(source, target, external_data="reference")
    assert listing(tmp_path) == before
    shutil.copy(data, target.with_name(DATA))  # moved there by the user
    fuse(source, target, external_data="reference")
    check_runs(source, target)


def test_data_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """The folder is made with the copy, and goes again when the run fails."""
    source, target = tmp_path / "in" / PATH, tmp_path / "out" / PATH
    for one in (source, target):
        one.parent.mkdir()
    write(tmp_path / "flat" / PATH)
    (source.parent / "data" / "deep").mkdir(parents=True)
    model = read(tmp_path / "flat" / PATH)
    for tensor, _ in external(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = f"data/deep/{DATA}"
    source.write_bytes(model.SerializeToString())
    shutil.move(tmp_path / "flat" / DATA, source.parent / "data" / "deep" / DATA)
    before = listing(tmp_path)
    with pytest.raises(ModelFileError, match=r"^.*/out/data: cannot be written: is a directory$"):
        zyfa_ort.fuse(source, target.with_name("data"))
    assert listing(tmp_path) == before
    fuse(source, target)
    check_runs(source, target)


@pytest.mark.parametrize("how", ["copy", "hardlink"])
def test_a_model_cache_of_symbolic_links(how: str, tmp_path: Path) -> None:
    """Model and data are links to blobs under other names; the fused model is made of plain files."""
    blobs = write(tmp_path / "blobs" / PATH)
    snapshot, out = tmp_path / "snapshot", tmp_path / "out"
    for folder in (snapshot, out):
        folder.mkdir()
    for name in (PATH, DATA):
        blobs.with_name(name).rename(blobs.with_name(f"hash-of-{name}"))
        (snapshot / name).symlink_to(blobs.with_name(f"hash-of-{name}"))
    fuse(snapshot / PATH, out / PATH, external_data=how)
    assert not (out / DATA).is_symlink()
    assert (out / DATA).samefile(snapshot / DATA) == (how == "hardlink")
    check_runs(write(tmp_path / "plain" / PATH), out / PATH)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_from_another_working_directory(
    elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths; and a change of the directory between reading and writing."""
    source = write(tmp_path / "in" / PATH)
    for name in ("out", "unrelated"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "out" / PATH
    if elsewhere:
        model = model_file.load(f"in/{PATH}")
        monkeypatch.chdir(tmp_path / "unrelated")
        model_file.save(model, target)
    else:
        fuse(Path("in") / PATH, Path("out") / PATH)
    monkeypatch.chdir(tmp_path / "unrelated")
    check_weights(source, target)
    check_runs(source, target)


def stored_in(tensor: TensorProto, location: str) -> TensorProto:
    """A copy of `tensor` whose bytes are at the start of a data file."""
    moved = TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
    moved.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(len(tensor.raw_data)))):
        moved.external_data.add(key=key, value=value)
    return moved


def test_data_of_functions_bodies_and_attributes(tmp_path: Path) -> None:
    """Wherever a tensor may stand, its file is checked and copied."""
    folder, out = tmp_path / "in", tmp_path / "out"
    for one in (folder, out):
        one.mkdir()
    tensor = numpy_helper.from_array(np.arange(6, dtype=np.float32), "t")
    places = ("function", "body", "body initializer", "list", "unused")
    constants = {}
    for place in places:
        (folder / f"{place}.bin").write_bytes(tensor.raw_data)
        constants[place] = stored_in(tensor, f"{place}.bin")

    def constant(place: str) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [place], value=constants[place])

    graph = Graph()
    graph.input("x", np.float32, [6])
    graph.input("c", np.bool_, [])
    body = helper.make_graph(
        [constant("body"), helper.make_node("Add", ["body", "t"], ["sum"])],
        "body",
        [],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [6])],
        [constants["body initializer"]],
    )
    graph.op("If", "c", name="chosen", then_branch=body, else_branch=body)
    graph.op("Odd", "x", name="odd", domain="custom", tensors=[constants["list"], tensor])
    graph.initializers.append(constants["unused"])
    opsets = [helper.make_opsetid("", 18)]
    graph.functions.append(
        helper.make_function("local", "F", ["a"], ["function"], [constant("function")], opsets)
    )
    graph.output("chosen", np.float32, [6])
    imports = [*opsets, helper.make_opsetid("custom", 1), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph.graph(), opset_imports=imports, functions=graph.functions, ir_version=9)
    (folder / PATH).write_bytes(model.SerializeToString())

    model_file.save(model_file.load(folder / PATH), out / PATH)
    assert set(listing(out)) == {PATH, *(f"{place}.bin" for place in places)}
    for place in places:
        (folder / f"{place}.bin").rename(tmp_path / "away")
        with pytest.raises(ModelFileError, match=f"{place}.bin: cannot be read: no such file or directory"):
            model_file.load(folder / PATH)
        (tmp_path / "away").rename(folder / f"{place}.bin")


def test_comparing_models_whose_data_are_links(tmp_path: Path) -> None:
    """bfloat16 models are run in float: their weights are read, and written to a folder of their own."""
    plain = write_toy(tmp_path / "plain.onnx", dtype="bfloat16")
    source, target = tmp_path / "in" / PATH, tmp_path / "out" / PATH
    for one in (source, target):
        one.parent.mkdir()
    onnx.save(onnx.load(plain), source, save_as_external_data=True, location=DATA, size_threshold=0)
    zyfa_ort.fuse(source, target, external_data="hardlink")
    found = zyfa_ort.compare_models(source, target, runs=0)
    assert not found.failures
    exact = zyfa_ort.compare_models(plain, source, runs=0, layers=False)
    assert all(error.max_abs == 0 for error in exact.outputs)


def test_what_follow_link_is_for(tmp_path: Path) -> None:
    source = write(tmp_path / PATH)
    os.link(source.with_name(DATA), tmp_path / "other")
    model = model_file.load(source)
    held = next(iter(data_files.external_tensors(model)))
    with pytest.raises(ValueError, match="multiple hard links"):
        held.numpy()
    data_files.follow_link(held)
    assert held.tobytes() == content(read(source), tmp_path)[held.name or ""]
