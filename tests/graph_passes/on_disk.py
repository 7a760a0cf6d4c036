"""Small models with external data, and what is in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import onnx
from custom_ops.problems import Sizes
from onnx.external_data_helper import uses_external_data

from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, layers
from graph_passes.graph import Graph

SIZES = Sizes(batch=2, heads=4, kv_heads=2, q_len=9, kv_len=9)
STYLES = (Style(form="sdpa", mask=masks.causal()), Style(mask=masks.causal()))
DATA = "weights.bin"
WEIGHT_BYTES = 1000


def two_layers() -> onnx.ModelProto:
    return layers(Graph(), SIZES, STYLES).model()


def write(
    path: Path, data: Literal["inside", "one file", "one each"] = "one file", least: int = WEIGHT_BYTES
) -> Path:
    """The two-layer model in a new folder, tensors of at least so many bytes in the data file(s). Returns its path.

    ONNX Runtime (1.32) does not read shape vectors from a data file."""
    path.parent.mkdir(exist_ok=True)
    if data == "inside":
        onnx.save(two_layers(), path)
    else:
        together = data == "one file"
        onnx.save(
            two_layers(),
            path,
            save_as_external_data=True,
            all_tensors_to_one_file=together,
            location=DATA if together else None,
            size_threshold=least,
        )
    return path


def read(path: Path) -> onnx.ModelProto:
    """The file itself; external data stays where it is."""
    return onnx.load(path, load_external_data=False)


def external(model: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, dict[str, str]]]:
    """Initializers with their location, offset and length."""
    for tensor in model.graph.initializer:
        if uses_external_data(tensor):
            yield tensor, {entry.key: entry.value for entry in tensor.external_data}


def content(model: onnx.ModelProto, folder: Path) -> dict[str, bytes]:
    """Initializers' bytes by name, read from the data files in `folder`."""
    found = {}
    for tensor, where in external(model):
        stored = (folder / where["location"]).read_bytes()
        offset = int(where.get("offset", 0))
        found[tensor.name] = stored[offset : offset + int(where["length"])]
    return found


def listing(folder: Path) -> dict[str, bytes | None]:
    """Everything below `folder` with its bytes (None for a folder)."""
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")
    }
