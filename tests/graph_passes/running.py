"""Fusing a model in memory, and running it before and after: the oracle is the original graph in ONNX Runtime with all
optimisations off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from numpy.typing import NDArray
from zyfa_ort.graph_passes.pipeline import FuseOptions, FuseReport, fuse_model
from zyfa_ort.graph_passes.schema import DOMAIN, PREFILL_ATTENTION

import zyfa_ort
from zyfa_ort.numerics import TOLERANCES, relative_error

Feeds = Mapping[str, NDArray[Any]]
Outputs = dict[str, NDArray[Any]]
FP32 = FuseOptions("fp32")


def fuse(model: onnx.ModelProto, options: FuseOptions = FP32) -> tuple[onnx.ModelProto, FuseReport]:
    """A fused copy of `model` (fp32 kernels unless asked otherwise) that passes onnx.checker, and the report."""
    held = ir.serde.deserialize_model(model)
    report = fuse_model(held, options)
    fused = ir.serde.serialize_model(held)
    onnx.checker.check_model(fused)
    return fused, report


def assert_untouched(after: onnx.ModelProto, before: onnx.ModelProto) -> None:
    """To the byte, apart from what reading and writing a model does."""
    written = ir.serde.serialize_model(ir.serde.deserialize_model(before))
    assert after.SerializeToString(deterministic=True) == written.SerializeToString(deterministic=True)


def original_session(model: onnx.ModelProto | Path) -> ort.InferenceSession:
    """The model as it is written."""
    return _session(model, _as_written())


def fused_session(model: onnx.ModelProto | Path, as_written: bool = False) -> ort.InferenceSession:
    """With the operator library, optimisations at their default as users have them."""
    return _session(model, zyfa_ort.register(_as_written() if as_written else _options()))


def _as_written() -> ort.SessionOptions:
    options = _options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def _session(model: onnx.ModelProto | Path, options: ort.SessionOptions) -> ort.InferenceSession:
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_both(
    original: onnx.ModelProto | Path, fused: onnx.ModelProto | Path, feeds: Feeds
) -> tuple[Outputs, Outputs]:
    """Outputs by name of both models on the same inputs."""
    return (
        zyfa_ort.run(original_session(original), feeds),
        zyfa_ort.run(fused_session(fused), feeds),
    )


def assert_same_numbers(
    got: NDArray[Any], wanted: NDArray[Any], tolerance: str = "fp32", what: str = ""
) -> None:
    """Shape, type and, within the named tolerance, numbers agree."""
    assert got.shape == wanted.shape and got.dtype == wanted.dtype, what
    assert np.isfinite(wanted.astype(np.float64)).all(), f"{what}: the reference is not finite"
    violations = TOLERANCES[tolerance].violations(got, wanted)
    assert not violations, f"{what} {tolerance}: {'; '.join(violations)}"


def assert_within(got: NDArray[Any], wanted: NDArray[Any], bound: float, what: str) -> None:
    """Relative error of the whole and of its worst row."""
    assert got.shape == wanted.shape, what
    assert relative_error(got, wanted) <= bound, what


def attention_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Fused nodes of the main graph."""
    return [node for node in model.graph.node if (node.domain, node.op_type) == (DOMAIN, PREFILL_ATTENTION)]


def attribute(node: onnx.NodeProto, name: str) -> Any:
    """An attribute's value; None when it is absent."""
    found = [one for one in node.attribute if one.name == name]
    value = onnx.helper.get_attribute_value(found[0]) if found else None
    return value.decode() if isinstance(value, bytes) else value


def imports(model: onnx.ModelProto) -> dict[str, int]:
    """Domain -> version; every domain once."""
    domains = [one.domain for one in model.opset_import]
    assert len(set(domains)) == len(domains)
    return {one.domain: one.version for one in model.opset_import}


def check_fused(
    model: onnx.ModelProto,
    feeds: Feeds,
    *more: Feeds,
    fused: int = 1,
    tolerance: str = "fp32",
    rows: Callable[[Feeds], NDArray[np.bool_]] | None = None,
) -> tuple[onnx.ModelProto, FuseReport]:
    """All sites (`fused` of them) are fused and every output keeps its numbers on each of the input sets.

    rows: which (batch, row) of the outputs see a key; the others must be zeros in the fused model.
    """
    after, report = fuse(model)
    declined = [f"{site.at}: {site.reason}" for site in report.sites if site.status == "declined"]
    assert (report.fused, report.declined) == (fused, 0), declined
    sessions = original_session(model), fused_session(after)
    for given in (feeds, *more):
        wanted, got = (zyfa_ort.run(session, given) for session in sessions)
        for name in wanted:
            seen = slice(None) if rows is None else rows(given)
            assert_same_numbers(got[name][seen], wanted[name][seen], tolerance, name)
            assert rows is None or not got[name][~rows(given)].any(), (
                "a row without a visible key is not zero"
            )
    return after, report
