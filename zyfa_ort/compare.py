"""A/B comparison of two models on the same inputs: outputs, every fused attention, latency."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zyfa_ort import api, numerics
from zyfa_ort import inputs as model_inputs
from zyfa_ort.errors import InputError
from zyfa_ort.prepared import Prepared, prepare_pair

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

    from zyfa_ort.inputs import Inputs

    Outputs = dict[str, NDArray[Any]]

# Outputs as wide as this are taken for logits.
_NARROWEST_VOCABULARY = 32


@dataclass(frozen=True)
class OutputError:
    """Difference of one output on one input set, padding rows left out. KL and top-1 are None for what is not logits."""

    inputs: str
    output: str
    relative: float
    max_abs: float
    kl: float | None = None
    top1: float | None = None


@dataclass(frozen=True)
class SiteError:
    """Relative error of one fused attention's output on one input set; errors of earlier layers are in it."""

    inputs: str
    node: str
    relative: float


@dataclass(frozen=True)
class Latency:
    """Seconds per run on this machine, median and 99th percentile, of runs that alternate between the two models."""

    inputs: str
    runs: int
    reference_p50: float
    reference_p99: float
    candidate_p50: float
    candidate_p99: float


@dataclass(frozen=True)
class Comparison:
    """What `compare_models` found. `failures` says which bound was passed and by what; empty: the models agree."""

    bound: str
    outputs: tuple[OutputError, ...]
    sites: tuple[SiteError, ...]
    latencies: tuple[Latency, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def compare_models(
    reference: api.PathLike,
    candidate: api.PathLike,
    *,
    inputs: api.PathLike | None = None,
    request: model_inputs.Request | None = None,
    runs: int = 0,
    layers: bool = True,
    max_kl: float | None = None,
) -> Comparison:
    """Runs both models on the CPU on the same inputs.

    Args:
        reference: the original model.
        candidate: the fused one.
        inputs: .npz file or folder of them (one input set each); None makes valid inputs from the signature.
        request: sizes and seed of made inputs.
        runs: timed runs per model and input set; 0 measures no time.
        layers: also compare the output of every fused attention with the value of the same name in the reference.
        max_kl: bound on the mean KL in nats; None takes the one for the candidate's precision from numerics.py.

    Raises:
        ModelFileError, InputError, LibraryError: a model, an input set or the operator library is unusable.
    """
    with prepare_pair(Path(reference), Path(candidate), layers) as (first, second):
        return _compare(first, second, inputs, request or model_inputs.Request(), runs, max_kl)


def _compare(
    first: Prepared,
    second: Prepared,
    inputs: api.PathLike | None,
    request: model_inputs.Request,
    runs: int,
    max_kl: float | None,
) -> Comparison:
    bound_name = second.loosest_precision
    bound = numerics.MODEL_BOUNDS[bound_name]
    sessions = [_session(model.path) for model in (first, second)]
    outputs: list[OutputError] = []
    sites: list[SiteError] = []
    latencies: list[Latency] = []
    for name, given in _input_sets(sessions[0], first, inputs, request):
        pair = [_run(session, given) for session in sessions]
        for output in first.outputs:
            if output in pair[1]:
                outputs.append(_output_error(name, output, pair[0][output], pair[1][output], given))
        for site in second.sites:
            if site.value in pair[0] and site.value in pair[1]:
                reference, other = (_valid(values[site.value], given, site.rows_axis) for values in pair)
                sites.append(SiteError(name, site.node, numerics.relative_error(other, reference)))
        if runs:
            latencies.append(_latency(name, sessions, given, runs, first.outputs))
    if not outputs:
        raise InputError(
            f"{second.source}: expected an output named like one of the reference: {', '.join(first.outputs)}"
        )
    limit = bound.kl if max_kl is None else max_kl
    return Comparison(
        bound_name,
        tuple(outputs),
        tuple(sites),
        tuple(latencies),
        (*first.notes, *second.notes),
        tuple(failure for error in outputs for failure in _failures(error, bound.relative, limit)),
    )


def _session(path: Path) -> onnxruntime.InferenceSession:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = (
        4  # errors arrive as exceptions; printing them too would say everything twice
    )
    return api.session(path, "cpu", options=options)


def _input_sets(
    session: onnxruntime.InferenceSession,
    first: Prepared,
    inputs: api.PathLike | None,
    request: model_inputs.Request,
) -> Iterator[tuple[str, Inputs]]:
    if inputs is None:
        request = model_inputs.with_vocabulary(request, first.vocabulary)
        yield f"made, seed {request.seed}", model_inputs.make_inputs(session, request)
        return
    for name, given in model_inputs.read_inputs(Path(inputs)):
        yield name, model_inputs.fit_inputs(session, given)


def _run(session: onnxruntime.InferenceSession, given: Inputs) -> Outputs:
    return api.run(session, model_inputs.fit_inputs(session, given))


def _valid(array: NDArray[Any], given: Inputs, rows_axis: int) -> NDArray[np.float64]:
    """The rows that are not padding, in float64; the whole array when it has no rows."""
    if array.ndim <= rows_axis:
        return array.astype(np.float64)
    rows = np.moveaxis(array, rows_axis, 1)
    return rows.astype(np.float64)[model_inputs.valid_rows(given, *rows.shape[:2])]


def _output_error(
    inputs: str, output: str, expected: NDArray[Any], actual: NDArray[Any], given: Inputs
) -> OutputError:
    # Logits are (batch, rows, vocabulary), caches (batch, heads, rows, head_dim).
    reference, other = (_valid(array, given, 2 if array.ndim == 4 else 1) for array in (expected, actual))
    relative = numerics.relative_error(other, reference)
    max_abs = numerics.max_abs_error(other, reference)
    logits = output.startswith("logits") or (
        expected.ndim == 3 and expected.shape[2] >= _NARROWEST_VOCABULARY
    )
    if not logits or not reference.size:
        return OutputError(inputs, output, relative, max_abs)
    kl = float(numerics.kl_divergence(reference, other).mean())
    return OutputError(inputs, output, relative, max_abs, kl, numerics.top1_agreement(reference, other))


def _failures(error: OutputError, relative: float, kl: float) -> Iterator[str]:
    where = f"{error.output} on {error.inputs}"
    # Written so that NaN fails.
    if error.kl is not None and not error.kl <= kl:
        yield f"{where}: expected a mean KL <= {kl:g}, got {error.kl:.3g}"
    if not error.relative <= relative:
        yield f"{where}: expected a relative error <= {relative:g}, got {error.relative:.3g}"


def _latency(
    name: str,
    sessions: Sequence[onnxruntime.InferenceSession],
    given: Inputs,
    runs: int,
    outputs: Sequence[str],
) -> Latency:
    seconds: tuple[list[float], list[float]] = ([], [])
    fitted = [model_inputs.fit_inputs(session, given) for session in sessions]
    for run in range(runs + 1):
        for which, session in enumerate(sessions):
            start = time.perf_counter()
            api.run(session, fitted[which], outputs)
            if run:  # the first pair warms up
                seconds[which].append(time.perf_counter() - start)
    return Latency(name, runs, *(float(np.percentile(s, q)) for s in seconds for q in (50, 99)))
