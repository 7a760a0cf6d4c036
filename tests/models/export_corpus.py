"""How each stored file was exported, and the same again.

    cd tests
    python -m models.export_corpus list [WORD...]            files whose names contain all words, and their exporters
    python -m models.export_corpus export FILE... --to DIR   exports them again, weights new, and compares with the store
    python -m models.export_corpus pack DIR                  takes the .onnx files of DIR into the store, without weights

A file that is new to the store also needs its line in index.json.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnx

from models import archive, corpus, weights
from models.corpus import Entry


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def difference(made: onnx.ModelProto, stored: onnx.ModelProto) -> str:
    """Operators with other counts, as "Add +2, Where -1"; empty when there are none."""
    counts = operators(made)
    counts.subtract(operators(stored))
    return ", ".join(f"{op_type} {count:+}" for op_type, count in sorted(counts.items()) if count)


def chosen(names: Sequence[str]) -> list[Entry]:
    known = {entry.file: entry for entry in corpus.entries()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"{unknown[0]}: expected a stored file; 'list' shows them")
    return [known[name] for name in names]


def list_files(words: Sequence[str]) -> None:
    for entry in corpus.entries():
        if all(word in entry.file for word in words):
            print(f"{entry.file}: {corpus.exporters()[entry.exporter]}")


def export_files(names: Sequence[str], folder: Path) -> int:
    """Number of files that could not be exported or came out different."""
    from models import export

    folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for entry in chosen(names):
        path = folder / f"{entry.file}.onnx"
        try:
            export.export(entry, path)
        except export.NotHere as error:
            print(error, file=sys.stderr)
            bad += 1
            continue
        found = difference(onnx.load(path), corpus.structure(entry))
        print(f"{path}: {found or 'operators as stored'}")
        bad += bool(found)
    return bad


def pack(folder: Path) -> None:
    files = archive.read(corpus.GRAPHS)
    found = sorted(folder.glob("*.onnx"))
    if not found:
        raise SystemExit(f"{folder}: expected .onnx files, found none")
    for path in found:
        model = onnx.load(path)
        weights.strip(model)
        files[path.name] = model.SerializeToString(deterministic=True)
    archive.write(corpus.GRAPHS, files)
    print(f"{corpus.GRAPHS.name}: {len(files)} graphs, {corpus.GRAPHS.stat().st_size} bytes")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.export_corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list")
    listing.add_argument("words", nargs="*")
    exporting = commands.add_parser("export")
    exporting.add_argument("files", nargs="+")
    exporting.add_argument("--to", type=Path, required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "list":
        list_files(given.words)
    elif given.command == "pack":
        pack(given.folder)
    else:
        return int(bool(export_files(given.files, given.to)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
