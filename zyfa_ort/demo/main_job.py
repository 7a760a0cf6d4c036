"""Export, fuse, compare: every step leaves its result in the cache folder and is skipped when that is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zyfa_ort import api, numerics
from zyfa_ort.demo.variants import VARIANTS, Variant

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers
    from numpy.typing import NDArray

    from zyfa_ort.graph_passes.report import FuseReport

Say = Callable[[str], None]

TEXT = Path(__file__).with_name("text.txt")
PROMPT = "<|im_start|>user\nName three primary colors.<|im_end|>\n<|im_start|>assistant\n"
_END_OF_TURN = "<|im_end|>"
_LOGIT_ROWS = 128  # rows of 49,152 logits turned into float64 at a time


@dataclass(frozen=True)
class Row:
    """One line of the demo's table. Seconds are medians on the machine at hand; KL in nats, mean over the text."""

    title: str
    sites: int
    fused: int
    kl: float
    top1: float
    max_abs: float
    relative: float
    seconds: float


@dataclass(frozen=True)
class Demo:
    """Everything the demo shows."""

    tokens: int
    original_seconds: float
    rows: tuple[Row, ...]
    answer: str


@dataclass(frozen=True)
class Cache:
    """Where the artefacts are."""

    folder: Path

    @property
    def original(self) -> Path:
        return self.folder / "original.onnx"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer.json"

    def fused(self, variant: Variant) -> Path:
        return self.folder / variant.file


def run_demo(folder: Path, say: Say, rounds: int = 3) -> Demo:
    """The whole job. `rounds` timed prefills per model, interleaved.

    Raises:
        InputError: the package that carries the model is not installed.
        GraphPassError: the exported model cannot be read or written.
    """
    cache = Cache(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _export(cache, say)
    reports = {variant: _fuse(cache, variant, say) for variant in VARIANTS}
    tokenizer = load_tokenizer(cache)
    ids = np.array([tokenizer.encode(TEXT.read_text(encoding="utf-8")).ids], np.int64)
    say(f"opening {1 + len(VARIANTS)} models")
    original = api.session(cache.original, "cpu")
    sessions = {variant: api.session(cache.fused(variant), "cpu") for variant in VARIANTS}
    say(f"prefill of {ids.shape[1]} tokens, {rounds} rounds over all models")
    original_seconds, seconds, errors = _measure(original, sessions, ids, rounds)
    rows = tuple(
        Row(
            variant.title,
            len(reports[variant].sites),
            reports[variant].fused + reports[variant].already_fused,
            *errors[variant],
            seconds[variant],
        )
        for variant in VARIANTS
    )
    say("generating with the last model and its cache")
    answer = generate(sessions[VARIANTS[-1]], tokenizer, PROMPT, 20)
    return Demo(ids.shape[1], original_seconds, rows, answer)


def load_tokenizer(cache: Cache) -> tokenizers.Tokenizer:
    """The tokenizer that the export left in the cache."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(cache.tokenizer))


def no_past(session: onnxruntime.InferenceSession) -> dict[str, NDArray[Any]]:
    """Empty caches for all layers of a model with a batch of one."""
    return {
        value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
        for value in session.get_inputs()
        if value.name.startswith("past_key_values.")
    }


def prefill(session: onnxruntime.InferenceSession, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Logits (1, tokens, vocabulary) of a text, caches not fetched."""
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), **no_past(session)}
    return api.run(session, inputs, ["logits"])["logits"]


def generate(
    session: onnxruntime.InferenceSession, tokenizer: tokenizers.Tokenizer, prompt: str, tokens: int
) -> str:
    """Greedy continuation of a prompt through the model's KV cache, up to `tokens` tokens or the end of the turn."""
    ids = np.array([tokenizer.encode(prompt).ids], np.int64)
    end = tokenizer.token_to_id(_END_OF_TURN)
    past = no_past(session)
    total = 0
    answer: list[int] = []
    while len(answer) < tokens:
        total += ids.shape[1]
        outputs = api.run(
            session, {"input_ids": ids, "attention_mask": np.ones((1, total), np.int64), **past}
        )
        best = int(np.argmax(outputs["logits"][0, -1]))
        if best == end:
            break
        answer.append(best)
        ids = np.array([[best]], np.int64)
        past = {name: outputs[name.replace("past_key_values", "present")] for name in past}
    return str(tokenizer.decode(answer))


def _export(cache: Cache, say: Say) -> None:
    if cache.original.exists() and cache.tokenizer.exists():
        return
    from zyfa_ort.demo.checkpoint import load_checkpoint
    from zyfa_ort.demo.export import export_with_cache

    say("reading SmolLM2-135M-Instruct")
    checkpoint = load_checkpoint()
    say("exporting it to ONNX (torch, TorchScript route)")
    checkpoint.tokenizer.save(str(cache.tokenizer))
    export_with_cache(checkpoint.model, cache.original)


def _fuse(cache: Cache, variant: Variant, say: Say) -> FuseReport:
    target = cache.fused(variant)
    if target.exists() and target.stat().st_mtime >= cache.original.stat().st_mtime:
        return api.inspect(target)
    say(f"fusing: {variant.title}")
    return api.fuse(
        cache.original,
        target,
        precision=variant.precision,
        rotate=variant.rotate,
        fp8_edges=variant.fp8_edges,
    )


def _measure(
    original: onnxruntime.InferenceSession,
    sessions: Mapping[Variant, onnxruntime.InferenceSession],
    ids: NDArray[np.int64],
    rounds: int,
) -> tuple[float, dict[Variant, float], dict[Variant, tuple[float, float, float, float]]]:
    """Median seconds of the original and of every fused model, and the errors of their logits.

    The first of the interleaved rounds also warms up; a median of three does not see it.
    """
    everyone: dict[Variant | None, onnxruntime.InferenceSession] = {None: original}
    everyone.update(sessions.items())
    seconds: dict[Variant | None, list[float]] = {which: [] for which in everyone}
    errors: dict[Variant, tuple[float, float, float, float]] = {}
    expected: NDArray[np.float32] | None = None
    for _ in range(rounds):
        for which, session in everyone.items():
            start = time.perf_counter()
            logits = prefill(session, ids)
            seconds[which].append(time.perf_counter() - start)
            if which is None:
                expected = logits
            elif which not in errors and expected is not None:
                errors[which] = _logit_errors(expected, logits)
    medians = {which: float(np.median(times)) for which, times in seconds.items()}
    return medians[None], {variant: medians[variant] for variant in sessions}, errors


def _logit_errors(expected: NDArray[Any], actual: NDArray[Any]) -> tuple[float, float, float, float]:
    """Mean KL, top-1 agreement, largest absolute and relative error, a slice of rows at a time."""
    kl, agree, largest, difference, length = [], 0.0, 0.0, 0.0, 0.0
    rows = expected.shape[1]
    for first in range(0, rows, _LOGIT_ROWS):
        e, a = (x[0, first : first + _LOGIT_ROWS].astype(np.float64) for x in (expected, actual))
        kl.append(numerics.kl_divergence(e, a))
        agree += numerics.top1_agreement(e, a) * len(e)
        largest = max(largest, numerics.max_abs_error(a, e))
        difference += float(np.sum((a - e) ** 2))
        length += float(np.sum(e**2))
    return float(np.concatenate(kl).mean()), agree / rows, largest, float(np.sqrt(difference / length))
