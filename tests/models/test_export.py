"""Exporting again gives the stored graphs: the same operators, the same attentions."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import zyfa_ort
from models import archive, corpus, export_corpus
from models.meaning import recovered

# Needs torch and transformers; a dynamo export takes 6 s and more.
AGAIN = [
    "gpt_oss__ts17__eager_past_dyn_fp32",
    "triu_inf__ts17__hand_hand_dyn_fp32",
    "whisper__osfuse__dynamo18_eager_whisper_dyn_fp32",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "bert__ortopt__ts17_eager_mask_dyn_fp32",
            "deepseek_v3__ts17__sdpa_past_dyn_fp32",
            "gemma2__dynamo18__eager_mask_stat_fp32",
            "llama__dynamo23__sdpa_nomask_stat_fp32",
            "mistral__dynamo18__sdpa_past_dyn_fp32",
            "t5__dynamo18__eager_t5_dyn_fp32",
        )
    ),
]


@pytest.mark.parametrize("name", AGAIN)
def test_exported_again(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export_corpus.main(["export", name, "--to", str(tmp_path)]) == 0, capsys.readouterr().err
    assert "operators as stored" in capsys.readouterr().out
    made = onnx.load(tmp_path / f"{name}.onnx")
    (entry,) = (one for one in corpus.entries() if one.file == name)
    stored = corpus.structure(entry)
    assert [value.name for value in made.graph.input] == [value.name for value in stored.graph.input]
    report = zyfa_ort.inspect(tmp_path / f"{name}.onnx")
    if entry.exporter not in ("osfuse", "ortopt"):  # whose attention is one operator already
        found = [
            recovered(*pair) for pair in zip(report.sites, [one.scale for one in entry.sites], strict=True)
        ]
        assert found == list(entry.sites)


@pytest.mark.parametrize(
    ("name", "need"),
    [
        ("llama__optimum__sdpa_past", "needs optimum-onnx 0.1.0"),
        ("llama__genai__int4_cpu", "needs onnxruntime-genai 0.18.0"),
    ],
)
def test_other_exporters_say_what_they_need(
    name: str, need: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export_corpus.main(["export", name, "--to", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(name) and need in message and message.count("\n") == 1


def test_unknown_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="llama: expected a stored file"):
        export_corpus.main(["export", "llama", "--to", str(tmp_path)])


def test_a_difference_is_named() -> None:
    one, other = (corpus.structure(entry) for entry in corpus.entries()[:2])
    assert export_corpus.difference(one, one) == ""
    assert "Attention -2" in export_corpus.difference(one, other)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert export_corpus.main(["list", "llama", "genai"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{entry.file}: {corpus.exporters()['genai']}"
        for entry in corpus.entries()
        if "llama" in entry.file and entry.exporter == "genai"
    ]


def test_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "graphs.tar.xz"
    archive.write(store, {"a.onnx": b"one"})
    monkeypatch.setattr(corpus, "GRAPHS", store)
    onnx.save(corpus.model(corpus.entries()[0]), tmp_path / "b.onnx")
    assert export_corpus.main(["pack", str(tmp_path)]) == 0
    files = archive.read(store)
    assert files["a.onnx"] == b"one"
    held = onnx.ModelProto.FromString(files["b.onnx"])
    assert any(one.external_data for one in held.graph.initializer)


def test_an_archive_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    for name in ("one", "other"):
        archive.write(tmp_path / name, {"b": b"2", "a": b"1"})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert archive.read(tmp_path / "one") == {"a": b"1", "b": b"2"}
