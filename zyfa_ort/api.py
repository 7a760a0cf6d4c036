"""The public functions: fuse a model, look at one, open a session, call the operator directly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zyfa_ort.errors import DeviceError, InputError
from zyfa_ort.library import register
from zyfa_ort.tensors import from_ortvalue, to_ortvalue

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

    from zyfa_ort.graph_passes.data_files import ExternalData
    from zyfa_ort.graph_passes.report import FuseReport, PrecisionChoice, QuantizeNodes, RotateChoice
    from zyfa_ort.graph_passes.schema import Alignment, Fp8Edges, Layout, Precision, Rotation

PathLike = str | os.PathLike[str]
Device = Literal["auto", "cpu", "gpu"]

_NO_MEMORY = "Allocation failed"  # all that ONNX Runtime says of a GPU without memory for a run's inputs


def fuse(
    source: PathLike,
    target: PathLike,
    *,
    precision: PrecisionChoice = "auto",
    rotate: RotateChoice = "none",
    fp8_edges: Fp8Edges = "hilo",
    plan: PathLike | None = None,
    external_data: ExternalData = "copy",
    quantize_nodes: QuantizeNodes = "folded",
    portable: bool = False,
) -> FuseReport:
    """Writes a copy of a model in which every attention that can be is one ``ZyfaPrefillAttention`` node.

    Args:
        source: ONNX file. Weights in external data are never read.
        target: file to write; appears complete or not at all. In the source's folder it refers to the same data files.
        precision: "auto" is "bf16"; "fp8" has to be asked for. Sites with softcap or a bias get "bf16" instead of "fp8".
        rotate: Hadamard rotation of query and key before FP8; "auto" where the head dim allows it.
        fp8_edges: how FP8 treats the first and the last two key tiles of a row.
        plan: JSON file with exceptions per site (docs/cli.md).
        external_data: outside the source's folder "copy" copies data files beside the target, "hardlink" links them (onnx and
            onnx_ir refuse to load both models then; ONNX Runtime and this package do not), "reference" fails unless they
            are there already.
        quantize_nodes: "explicit": FP8 codes are made by ``ZyfaQuantizeFp8`` (and ``ZyfaHadamard``) nodes in front of the
            attention, where it has no past and its edges are not "bf16"; with the same bits.
        portable: the model also carries a function with what the operator computes (in float32, with all scores in
            memory), which a runtime without the library uses. Needs opset 12 and IR version 8.

    Returns:
        One entry per attention site, fused or declined with the reason.

    Raises:
        ModelFileError: the source cannot be read, the target not written, or the target is the source.
        GraphPassError: an option is unknown, or the model is one that the passes refuse as a whole.
    """
    from zyfa_ort.graph_passes import data_files, model_file, pipeline
    from zyfa_ort.graph_passes.report import FuseOptions
    from zyfa_ort.plan import read_plan

    options = FuseOptions(
        precision,
        rotate,
        fp8_edges,
        per_site=read_plan(plan) if plan is not None else {},
        portable=portable,
        quantize_nodes=quantize_nodes,
    )
    data_files.check_choice(external_data)
    model = model_file.load(source)
    model_file.check_target(model, target, source)
    report = pipeline.fuse_model(model, options)
    model_file.save(model, target, external_data)
    return report


def inspect(source: PathLike) -> FuseReport:
    """The report of ``fuse`` without writing anything; nodes that are already fused are in it too.

    Raises:
        ModelFileError: the source cannot be read.
    """
    from zyfa_ort.graph_passes import model_file, pipeline

    return pipeline.inspect_model(model_file.load(source))


def session(
    path: PathLike,
    device: Device = "auto",
    *,
    options: onnxruntime.SessionOptions | None = None,
    provider_options: Mapping[str, str | int] | None = None,
    providers: Sequence[str] | None = None,
    strict: bool = False,
) -> onnxruntime.InferenceSession:
    """An ONNX Runtime session for a fused (or any) model, with the operators registered.

    Args:
        path: ONNX file.
        device: "cpu"; "gpu" fails when there is none, or when a node of ours has no GPU kernel; "auto" is the GPU where there
            is a real one with our kernels, and leaves nodes without to the CPU. What does not run on the GPU then is said in
            a ``PlacementWarning``.
        options: session options to use; library and providers are registered on them.
        provider_options: for the GPU: device_id, precision, allow_fallback, byte_rounding (docs/gpu.md); with
            onnxruntime-rocm those of its ROCm provider.
        providers: execution providers for all other nodes, in front of the CPU's. None: the MIGraphX provider beside a GPU,
            where this ONNX Runtime has it.
        strict: a node of ours that is not where it was asked to be, and with "gpu" any node on the CPU, is an error.

    Raises:
        DeviceError: "gpu" where this machine has none, a provider that cannot be loaded, or an ONNX Runtime before 1.24 that
            has no ROCm provider.
        InputError: a node of the domain ``ai.zyfa`` has an unknown attribute; an unknown device or provider.
        LibraryError: the operator library is missing or cannot be loaded.
        PlacementError: `strict`, with the counts and what helps.
    """
    import onnxruntime as ort

    from zyfa_ort import hosts
    from zyfa_ort.node_check import check_nodes
    from zyfa_ort.session_placement import check_placement

    given = hosts.in_words(provider_options)
    host = hosts.choose(device, given, providers)
    if device == "auto" and host.device is not None:
        given.setdefault("allow_fallback", "1")
    check_nodes(Path(path))
    registered = register(options if options is not None else ort.SessionOptions())
    made = hosts.open_session(str(path), host, registered, given)
    check_placement(made, Path(path), host, device, given, providers, strict)
    return made


def run(
    session: onnxruntime.InferenceSession,
    inputs: Mapping[str, NDArray[Any]],
    outputs: Sequence[str] | None = None,
) -> dict[str, NDArray[Any]]:
    """Runs a session on arrays, bfloat16 and float8_e4m3fn (ml_dtypes) included, and returns arrays by output name.

    Raises:
        InputError: an input of the model is missing, or one is given that it does not have.
        DeviceError: the GPU has no memory left for the inputs.
        RuntimeError: whatever else ONNX Runtime reports.
    """
    expected = [value.name for value in session.get_inputs()]
    for name in expected:
        if name not in inputs:
            raise InputError(f"input {name}: required by the model, got none")
    for name in inputs:
        if name not in expected:
            raise InputError(f"input {name}: expected one of {', '.join(expected)}")
    names = list(outputs) if outputs is not None else [value.name for value in session.get_outputs()]
    fed = {name: to_ortvalue(array) for name, array in inputs.items()}
    try:
        values = session.run_with_ort_values(names, fed)
    except Exception as error:  # the binding raises a different type per cause
        if _NO_MEMORY not in str(error):
            raise
        from zyfa_ort import gpu

        raise DeviceError(f"{gpu.PROVIDER}: {gpu.last_refusal() or _NO_MEMORY}") from error
    return {name: from_ortvalue(value) for name, value in zip(names, values, strict=True)}


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = True,
    softmax_scale: float | None = None,
    window_left: int = -1,
    softcap: float = 0.0,
    causal_alignment: Alignment = "bottom_right",
    layout: Layout = "BSHD",
    precision: Precision | None = None,
    fp8_edges: Fp8Edges | None = None,
    rotation: Rotation = "none",
    key_mask: Any | None = None,
    attn_bias: Any | None = None,
    sinks: Any | None = None,
    q_scale: Any | None = None,
    k_scale: Any | None = None,
    v_scale: Any | None = None,
    out_dtype: Any | None = None,
    return_lse: bool = False,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.float32]]:
    """Attention of arrays by the operator's kernel, without a model.

    Args:
        q: (B, Sq, Hq, Dqk), or (B, Hq, Sq, Dqk) with layout "BHSD"; float32, float16, bfloat16 or float8_e4m3fn; a NumPy or
            ml_dtypes array, or anything with DLPack that lives on the CPU.
        k, v: the same with Hkv heads (a divisor of Hq); v may have another head dim.
        causal: keys after the diagonal are invisible.
        softmax_scale: factor on the scores; None is 1/sqrt(Dqk).
        window_left: number of keys left of the diagonal that stay visible; -1 is all.
        softcap: softcap * tanh(score / softcap) after the scale; 0 is none.
        precision: "fp32", "bf16" or "fp8"; None is fp32 for float32 and float16, bf16 for bfloat16, fp8 for float8_e4m3fn.
        fp8_edges, rotation: see docs/operators.md; only with precision "fp8".
        key_mask: (B, Sk), nonzero is visible.
        attn_bias: broadcastable to (B, Hq, Sq, Sk), dtype of q.
        sinks: (Hq) float32, an extra logit per head in the denominator.
        q_scale, k_scale, v_scale: float32 (1), (H) or (B, H); required with float8_e4m3fn.
        out_dtype: float32, float16 or bfloat16; required with float8_e4m3fn.
        return_lse: also return (B, Hq, Sq) float32, the natural log of the sum of exponentials.

    Raises:
        InputError: an array has a type that the operator does not take.
        RuntimeError: the operator refuses the problem; the message names the attribute, what was expected and found.
    """
    from zyfa_ort.one_node import run_attention

    inputs = {
        "query": q, "key": k, "value": v, "key_mask": key_mask, "attn_bias": attn_bias,
        "q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale, "sinks": sinks,
    }  # fmt: skip
    attributes: dict[str, int | float | str | None] = {
        "is_causal": int(causal),
        "causal_alignment": causal_alignment,
        "window_left": window_left,
        "softcap": float(softcap),
        "scale": None if softmax_scale is None else float(softmax_scale),
        "layout": layout,
        "precision": precision,
        "fp8_edges": fp8_edges,
        "rotation": None if rotation == "none" else rotation,
    }
    return run_attention(inputs, attributes, out_dtype, return_lse)
