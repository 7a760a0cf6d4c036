"""The first layers of SmolLM2 on the emulated MI355X: attention by gfx950 machine code, everything else on the CPU.

Each model reads a prompt and writes one token through its cache, beside the same model in a session on the CPU.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zyfa_ort import api, env, gpu, numerics
from zyfa_ort.demo.main_job import TEXT, Say, load_tokenizer, no_past
from zyfa_ort.demo.main_job import Cache as MainCache
from zyfa_ort.demo.variants import VARIANTS, Variant
from zyfa_ort.errors import DeviceError, InputError, PlacementWarning
from zyfa_ort.kernels.emulator import hip_library_path

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

# Precisions with GPU kernels, and edge tiles that have one.
ON_GPU = tuple(v for v in VARIANTS if v.precision in ("bf16", "fp8") and v.fp8_edges != "bf16")
ALIKE_LAYERS = (
    2  # measured: FP8 differs by 1e-6 behind 2 layers and by 4e-2 behind 30, its distance from the original
)
DECODED_ROWS = 16  # at most so many query rows are decoded (docs/kernels.md)
Step = Literal["prefill", "decode"]
Placement = tuple[tuple[str, str, int], ...]  # provider, operator, number of nodes
_ERRORS_ONLY = 3  # ONNX Runtime warns that not every node is on the GPU, which the table says better


@dataclass(frozen=True)
class Row:
    """One step of one model. Errors are those of logits, and of the worst cache tensor, against the CPU session."""

    title: str
    step: Step
    tokens: int
    logits: float
    cache: float
    top1: float
    bound: float

    @property
    def holds(self) -> bool:
        return self.logits <= self.bound and self.cache <= self.bound


@dataclass(frozen=True)
class Emulated:
    """What was seen. `placement` by model; `findings`: the emulator's, empty when all is well."""

    device: str
    layers: int
    placement: dict[str, Placement]
    rows: tuple[Row, ...]
    findings: str

    @property
    def holds(self) -> bool:
        attention = (gpu.PROVIDER, "ZyfaPrefillAttention", self.layers)
        placed = all(attention in nodes for nodes in self.placement.values())
        return placed and all(row.holds for row in self.rows) and not self.findings


def run_emulated(folder: Path, say: Say, layers: int = 2, tokens: int = 40) -> Emulated:
    """Exports and fuses the first `layers`, reads `tokens` tokens and decodes one more, in every precision.

    Raises:
        InputError: the package that carries the model is not installed, or a number is out of range.
        DeviceError: HIP was opened in this process already, and it is not the emulated device.
    """
    device, before = _device(), _findings()
    cache = MainCache(folder / f"layers-{layers}")
    cache.folder.mkdir(parents=True, exist_ok=True)
    _export(cache, layers, say)
    ids = np.array([load_tokenizer(cache).encode(TEXT.read_text(encoding="utf-8")).ids], np.int64)
    if not 1 <= tokens <= ids.shape[1]:
        raise InputError(f"tokens: expected 1 to {ids.shape[1]}, the length of the demo's text, got {tokens}")
    rows: list[Row] = []
    placement: dict[str, Placement] = {}
    for variant in ON_GPU:
        if not _is_fresh(cache.fused(variant), cache.original):
            say(f"fusing: {variant.title}")
            api.fuse(cache.original, cache.fused(variant), precision=variant.precision, rotate=variant.rotate)
        say(f"{variant.title}: {tokens} tokens, then one more")
        session = _on_device(cache.fused(variant))
        placement[variant.title] = _placement(session)
        rows += _compare(session, api.session(cache.fused(variant), "cpu"), ids[:, :tokens], variant, layers)
    after = _findings()
    return Emulated(device, layers, placement, tuple(rows), after if after != before else "")


def _device() -> str:
    """Its name. HIP's library is opened once per process, by the first who asks."""
    before = os.environ.get(env.HIP_LIBRARY.name)
    os.environ[env.HIP_LIBRARY.name] = hip_library_path()
    try:
        metadata = gpu.chosen({}).ep_metadata
    finally:
        if before is None:
            del os.environ[env.HIP_LIBRARY.name]
        else:
            os.environ[env.HIP_LIBRARY.name] = before
    if metadata["emulated"] != "1":
        raise DeviceError(f"device: expected the emulated one, this process uses {metadata['name']}")
    return str(metadata["name"])


def _export(cache: MainCache, layers: int, say: Say) -> None:
    if cache.original.exists() and cache.tokenizer.exists():
        return
    from zyfa_ort.demo.checkpoint import load_checkpoint
    from zyfa_ort.demo.export import export_with_cache

    say(f"reading SmolLM2-135M-Instruct, its first {layers} layers")
    checkpoint = load_checkpoint(layers)
    say("exporting them to ONNX (torch, TorchScript route)")
    checkpoint.tokenizer.save(str(cache.tokenizer))
    export_with_cache(checkpoint.model, cache.original)


def _is_fresh(target: Path, source: Path) -> bool:
    return target.exists() and target.stat().st_mtime >= source.stat().st_mtime


def _on_device(path: Path) -> onnxruntime.InferenceSession:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlacementWarning)  # the table says it
        return api.session(path, "gpu", options=options)


def _placement(session: onnxruntime.InferenceSession) -> Placement:
    counts = Counter(
        (str(graph.ep_name), str(node.op_type))
        for graph in session.get_provider_graph_assignment_info()
        for node in graph.get_nodes()
    )
    return tuple(sorted((*where, count) for where, count in counts.items()))


def _compare(
    on_gpu: onnxruntime.InferenceSession,
    on_cpu: onnxruntime.InferenceSession,
    ids: NDArray[np.int64],
    variant: Variant,
    layers: int,
) -> list[Row]:
    """A prompt, and the token that the CPU session puts behind it; both decode from the CPU session's cache."""
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), **no_past(on_cpu)}
    got, wanted = api.run(on_gpu, inputs), api.run(on_cpu, inputs)
    rows = [_row("prefill", got, wanted, ids.shape[1], variant, layers)]
    past = {name: wanted[name.replace("past_key_values", "present")] for name in no_past(on_cpu)}
    best = np.argmax(wanted["logits"][:, -1:], axis=-1).astype(np.int64)
    inputs = {"input_ids": best, "attention_mask": np.ones((1, ids.shape[1] + 1), np.int64), **past}
    got, wanted = api.run(on_gpu, inputs), api.run(on_cpu, inputs)
    return [*rows, _row("decode", got, wanted, 1, variant, layers)]


def _row(
    step: Step,
    got: dict[str, NDArray[Any]],
    wanted: dict[str, NDArray[Any]],
    tokens: int,
    variant: Variant,
    layers: int,
) -> Row:
    caches = max(numerics.relative_error(got[name], wanted[name]) for name in got if name != "logits")
    logits = numerics.relative_error(got["logits"], wanted["logits"])
    top1 = numerics.top1_agreement(wanted["logits"], got["logits"])
    return Row(variant.title, step, tokens, logits, caches, top1, bound(variant, tokens, layers))


def bound(variant: Variant, tokens: int, layers: int) -> float:
    """Of the same arithmetic in another order, layer by layer; decode of FP8 leaves out the rounding of P.

    Behind more layers no code is the same any more, and two models of one precision are as far apart as from the original.
    """
    exact_softmax = variant.precision == "fp8" and tokens <= DECODED_ROWS
    if exact_softmax or layers > ALIKE_LAYERS:
        return numerics.MODEL_BOUNDS[variant.precision].relative
    kernel = "bf16" if variant.precision == "bf16" else "fp8_model_bfloat16"
    return layers * numerics.TOLERANCES[kernel].relative


def _findings() -> str:
    """The last of the emulated device's errors, warnings and refusals in this process."""
    library = ctypes.CDLL(hip_library_path())
    report = library.zyfa_emulated_last_report
    report.argtypes, report.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_size_t
    text = ctypes.create_string_buffer(int(report(None, 0)) + 1)
    report(text, len(text))
    return text.value.decode(errors="replace")
