"""One file through one fusing tool: how many attentions it fused, what it recovered of them, whether the outputs hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import onnx
import onnx_ir as ir
from graph_passes.running import FP32, fused_session, original_session
from numpy.typing import NDArray
from zyfa_ort.graph_passes.pipeline import fuse_model
from zyfa_ort.graph_passes.upcast import upcast_bfloat16

import zyfa_ort
from models import corpus, peers
from models.corpus import Entry, Site
from models.meaning import recovered
from zyfa_ort.inputs import Inputs, fit_inputs, valid_rows
from zyfa_ort.numerics import MODEL_BOUNDS, relative_error

CONTRIB: Final = "com.microsoft"
# Operator of ONNX Runtime -> position of the tensor that is added to the scores, None where it takes none.
BIAS_INPUT: Final[dict[str, int | None]] = {
    "Attention": 5,
    "MultiHeadAttention": 5,
    "GroupQueryAttention": 10,
    "DecoderMaskedMultiHeadAttention": 5,
    "PackedAttention": 5,
    "PackedMultiHeadAttention": 6,
    "SparseAttention": None,
}
BOUNDS: Final = {"fp32": "fp32", "bf16": "fp32", "fp16": "bf16", "int4": "bf16"}

# The optimizer's model types to try besides "bert", the only one that found attention outside its family.
MODEL_TYPES: Final = {
    "clip": "clip",
    "opt": "bart",
    "phi": "phi",
    "qwen3": "qwen3",
    "t5": "t5",
    "vit": "vit",
    "whisper": "bart",
}
DECODER: Final = "gpt2"


@dataclass(frozen=True)
class Outcome:
    """fused     attentions that became one operator
    heads     of those whose key heads serve several query heads: how many keep their keys unexpanded
    grouped   how many of the fused ones that concerns
    masks     fused attentions whose mask became attributes or a key mask instead of a tensor of scores
    outputs   "equal", "differ", "not loaded", "not run"; "" when nothing was fused or the original does not run
    detail    the error, the size of a difference, or why something is not fused
    """

    fused: int = 0
    heads: int = 0
    grouped: int = 0
    masks: int = 0
    outputs: str = ""
    detail: str = ""


Fused = tuple[onnx.ModelProto, Outcome]


def ours(entry: Entry, model: onnx.ModelProto) -> Fused:
    held = ir.serde.deserialize_model(model)
    report = fuse_model(held, FP32)
    found = [
        (recovered(site, wanted.scale), wanted)
        for site, wanted in zip(report.sites, entry.sites, strict=True)
        if site.status == "fused"
    ]
    outcome = Outcome(
        fused=len(found),
        heads=sum(got.kv_heads == wanted.kv_heads for got, wanted in found if grouped(wanted)),
        grouped=sum(grouped(wanted) for _, wanted in found),
        masks=sum(mask(got) == mask(wanted) for got, wanted in found),
        detail="; ".join(sorted({site.reason for site in report.sites if site.status == "declined"})),
    )
    return ir.serde.serialize_model(held), outcome


def grouped(site: Site) -> bool:
    return site.heads != site.kv_heads


def mask(site: Site) -> tuple[object, ...]:
    return site.causal, site.top_left, site.window, site.padding, site.bias, site.sinks


def ort_optimizer(entry: Entry, model: onnx.ModelProto) -> Fused:
    """The best of two model types; an error only when both fail."""
    heads = entry.sites[0].heads
    made: list[Fused] = []
    errors = []
    for model_type in dict.fromkeys((MODEL_TYPES.get(entry.family, DECODER), "bert")):
        try:
            result = peers.ort_optimizer(
                model, model_type, heads=heads, hidden=heads * entry.sites[0].head_dim
            )
        except Exception as error:
            errors.append(f"{model_type}: {first_line(error)}")
        else:
            made.append((result, read_contrib(entry, model, result)))
    if not made:
        raise RuntimeError("; ".join(errors))
    return max(made, key=lambda one: one[1].fused)


def ort_session(entry: Entry, model: onnx.ModelProto) -> Fused:
    if entry.unloadable:
        return model, Outcome(detail="the original is not loaded either")
    made = peers.ort_session(upcast(model) if entry.dtype == "bf16" else model)
    return made, read_contrib(entry, model, made)


def onnxscript_fusions(entry: Entry, model: onnx.ModelProto) -> Fused:
    made = peers.onnxscript_fusions(model)
    return made, read_contrib(entry, model, made)


Tool = Callable[[Entry, onnx.ModelProto], Fused]
TOOLS: Final[dict[str, Tool]] = {
    "zyfa_ort": ours,
    "optimizer": ort_optimizer,
    "session": ort_session,
    "onnxscript": onnxscript_fusions,
}


def contrib_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.domain == CONTRIB and node.op_type in BIAS_INPUT]


def read_contrib(entry: Entry, before: onnx.ModelProto, after: onnx.ModelProto) -> Outcome:
    """What the attention operators say that `after` has and `before` has not."""
    old = {node.output[0] for node in contrib_nodes(before)}
    new = [node for node in contrib_nodes(after) if node.output[0] not in old]
    groups = grouped(entry.sites[0])
    return Outcome(
        fused=len(new),
        heads=sum(groups and node.op_type == "GroupQueryAttention" for node in new),
        grouped=len(new) * groups,
        masks=sum(not has_bias(node) for node in new),
    )


def has_bias(node: onnx.NodeProto) -> bool:
    position = BIAS_INPUT[node.op_type]
    return position is not None and len(node.input) > position and bool(node.input[position])


def judge(entry: Entry, tool: str) -> Outcome:
    """Runs the tool on the file and, where the original runs, both models on every input set.

    Raises whatever the tool raises.
    """
    original = corpus.model(entry)
    fused, outcome = TOOLS[tool](entry, original)
    if not outcome.fused or not entry.runnable:
        return outcome
    if entry.dtype == "bf16":
        original, fused = upcast(original), upcast(fused)
    reference = original_session(original)
    try:
        candidate = fused_session(fused)
    except Exception as error:
        return replace(outcome, outputs="not loaded", detail=first_line(error))
    worst, at = 0.0, ""
    for words in entry.runnable:
        feeds = fit_inputs(reference, corpus.feeds(entry, words))
        wanted = zyfa_ort.run(reference, feeds)
        try:
            got = zyfa_ort.run(candidate, feeds)
        except Exception as error:
            return replace(outcome, outputs="not run", detail=first_line(error))
        for one, other in zip(got.values(), wanted.values(), strict=True):
            off = relative_error(valid(one, feeds), valid(other, feeds))
            if not off <= worst:  # NaN is worse than anything
                worst, at = off, words
    bound = MODEL_BOUNDS[BOUNDS[entry.dtype]].relative
    if worst <= bound:
        return replace(outcome, outputs="equal")
    return replace(outcome, outputs="differ", detail=f"relative error {worst:.2g} on {at}")


def upcast(model: onnx.ModelProto) -> onnx.ModelProto:
    """Float in place of bfloat16, for which the CPU provider has no kernels."""
    held = ir.serde.deserialize_model(model)
    upcast_bfloat16(held)
    return ir.serde.serialize_model(held)


def valid(values: NDArray[Any], feeds: Inputs) -> NDArray[Any]:
    """The rows that are not padding: those of (batch, rows, width) or of a cache (batch, heads, rows, head_dim)."""
    rows = np.moveaxis(values, 2, 1) if values.ndim == 4 else values
    return rows[valid_rows(feeds, rows.shape[0], rows.shape[1])]


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def total(outcomes: Iterable[Outcome], trait: str) -> int:
    return sum(getattr(one, trait) for one in outcomes)


def endings(outcomes: Iterable[Outcome]) -> Counter[str]:
    """How many fused attentions are in files that end this way."""
    counts: Counter[str] = Counter()
    for one in outcomes:
        counts[one.outputs or "unjudged"] += one.fused
    return counts
