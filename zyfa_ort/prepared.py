"""Two models made comparable: without bfloat16 where the CPU has no kernels for it, with every attention visible."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from zyfa_ort.graph_passes import model_file, schema
from zyfa_ort.graph_passes.upcast import upcast_bfloat16
from zyfa_ort.graph_passes.values import attribute_string

# From the least to the most exact; numerics.MODEL_BOUNDS has a bound for each.
_LOOSEST_FIRST = ("fp8", "fp8, bf16 edges", "bf16", "fp32")


@dataclass(frozen=True)
class SiteOutput:
    """The output of a fused node: its value, which axis of it counts the query rows."""

    node: str
    value: str
    rows_axis: int


@dataclass(frozen=True)
class Prepared:
    """A model ready to run beside another one.

    source: the user's file; path: the file to run, the source itself when nothing had to change.
    outputs: names of the model's own outputs. sites: where the output of each fused attention is.
    vocabulary: number of token ids, None when it cannot be told.
    """

    source: Path
    path: Path
    outputs: tuple[str, ...]
    sites: tuple[SiteOutput, ...]
    loosest_precision: str
    vocabulary: int | None
    notes: tuple[str, ...]


@contextlib.contextmanager
def prepare_pair(reference: Path, candidate: Path, layers: bool) -> Iterator[tuple[Prepared, Prepared]]:
    """Both models, changed copies in a temporary folder where needed; the folder goes away at the end.

    Raises:
        ModelFileError: a file cannot be read, or a copy not written.
    """
    with tempfile.TemporaryDirectory(prefix="zyfa-compare-") as folder:
        models = [model_file.load(path) for path in (reference, candidate)]
        names = [_value_names(model) for model in models]
        sites = [_sites(models[1], names[0] & names[1] if layers else set())] * 2
        prepared = [
            _prepare(path, model, found, Path(folder) / label)
            for path, model, found, label in zip(
                (reference, candidate), models, sites, ("a", "b"), strict=True
            )
        ]
        yield prepared[0], prepared[1]


def _prepare(source: Path, model: ir.Model, sites: tuple[SiteOutput, ...], folder: Path) -> Prepared:
    outputs = tuple(value.name or "" for value in model.graph.outputs)
    notes: tuple[str, ...] = ()
    changed = upcast = upcast_bfloat16(model)
    if upcast:
        notes = (
            f"{source.name}: run with float in place of bfloat16, for which the CPU provider has no kernels",
        )
    by_name = {value.name: value for node in model.graph for value in node.outputs}
    for site in sites:
        if site.value not in outputs:
            model.graph.outputs.append(by_name[site.value])
            changed = True
    path = source
    if changed:
        folder.mkdir()
        path = folder / "model.onnx"
        if upcast:  # twice the bytes: beyond what one file may hold, for the models that people serve
            ir.save(model, path, external_data=f"{path.name}.data")
        else:
            model_file.save(model, path)
    return Prepared(source, path, outputs, sites, _loosest_precision(model), _vocabulary(model), notes)


def _value_names(model: ir.Model) -> set[str]:
    return {value.name for node in model.graph for value in node.outputs if value.name}


def _sites(model: ir.Model, shared: set[str]) -> tuple[SiteOutput, ...]:
    return tuple(
        SiteOutput(
            node.name or "",
            node.outputs[0].name,
            2 if attribute_string(node, "layout", "BSHD") == "BHSD" else 1,
        )
        for node in model.graph
        if node.domain == schema.DOMAIN and node.outputs[0].name in shared
    )


def _loosest_precision(model: ir.Model) -> str:
    found = set()
    for node in model.graph.all_nodes():
        if node.domain != schema.DOMAIN or node.op_type != schema.PREFILL_ATTENTION:
            continue
        by_type = "fp8" if "out_dtype" in node.attributes else "fp32"
        word = node.attributes["precision"].as_string() if "precision" in node.attributes else by_type
        edges = node.attributes["fp8_edges"].as_string() if "fp8_edges" in node.attributes else "hilo"
        found.add("fp8, bf16 edges" if (word, edges) == ("fp8", "bf16") else word)
    return next((precision for precision in _LOOSEST_FIRST if precision in found), "fp32")


def _vocabulary(model: ir.Model) -> int | None:
    """Rows of the table that token ids look up, else the width of the logits."""
    for value in model.graph.inputs:
        if value.name is not None and "input_ids" in value.name:
            for table in _tables(value):
                return table
    for value in model.graph.outputs:
        if value.name and value.name.startswith("logits") and value.shape is not None:
            last = value.shape[-1]
            return last if isinstance(last, int) else None
    return None


def _tables(ids: ir.Value) -> Iterator[int]:
    """First sizes of the weights that nodes reading `ids` (or a cast of them) take rows from."""
    for use in ids.uses():
        node = use.node
        if node.op_type in ("Cast", "Identity", "Reshape", "Unsqueeze"):
            yield from _tables(node.outputs[0])
        elif "Gather" in node.op_type or "Embed" in node.op_type:
            for value in node.inputs:
                if (
                    value is not None
                    and value.is_initializer()
                    and value.shape is not None
                    and len(value.shape) == 2
                ):
                    rows = value.shape[0]
                    if isinstance(rows, int):
                        yield rows
