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

# From the least to the most exact; numerics.MODEL_BOUNDS has a bound for each.
_LOOSEST_FIRST = ("fp8", "fp8, bf16 edges", "bf16", "fp32")


@dataclass(frozen=True)
class Prepared:
    """A model ready to run beside another one.

    source: the user's file; path: the file to run, the source itself when nothing had to change.
    outputs: names of the model's own outputs. sites: output value of each fused attention, by node name.
    vocabulary: number of token ids, None when it cannot be told.
    """

    source: Path
    path: Path
    outputs: tuple[str, ...]
    sites: dict[str, str]
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


def _prepare(source: Path, model: ir.Model, sites: dict[str, str], folder: Path) -> Prepared:
    outputs = tuple(value.name or "" for value in model.graph.outputs)
    notes: tuple[str, ...] = ()
    changed = upcast = upcast_bfloat16(model)
    if upcast:
        notes = (
            f"{source.name}: run with float in place of bfloat16, for which the CPU provider has no kernels",
        )
    by_name = {value.name: value for node in model.graph for value in node.outputs}
    for value in sites.values():
        if value not in outputs:
            model.graph.outputs.append(by_name[value])
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


def _sites(model: ir.Model, shared: set[str]) -> dict[str, str]:
    return {
        node.name or "": node.outputs[0].name
        for node in model.graph
        if node.domain == schema.DOMAIN and node.outputs[0].name in shared
    }


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
    for value in model.graph.outputs:
        if value.name and value.name.startswith("logits") and value.shape is not None:
            last = value.shape[-1]
            return last if isinstance(last, int) else None
    return None
