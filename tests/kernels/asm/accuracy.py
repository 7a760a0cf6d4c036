"""Errors of the FP8 kernels, and of models of other kernels, against float64 attention on the same codes.

As a program, in tests/, it prints the tables of docs/fp8_prefill.md: python -m kernels.asm.accuracy, and with --model that of
all heads of the real SmolLM2 (needs what `make demo` installs).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernels.asm.accuracy_families import FAMILIES, make_family
from kernels.asm.fp8_problems import Problem, cpu_answer
from kernels.asm.smollm2_capture import capture_model, load_sample
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from reference import fp8_baselines, fp8_problem
from zyfa_ort.kernels.asm.fp8_config import Fp8Config

from kernels.asm import fp8_launch
from kernels.hip import prefill_launch
from zyfa_ort.numerics import worst_row_error

Float64 = NDArray[np.float64]


def exact(problem: Problem) -> Float64:
    """Causal attention of the codes in float64, (B, H, Sq, Dv), heads of Q and K paired by groups."""
    q, k, v = (x.astype(np.float64) for x in (problem.query, problem.key, problem.value))
    group = q.shape[1] // k.shape[1]
    q, k, v = (
        x * problem.scales[f"{name}_scale"][:, :, None, None].astype(np.float64)
        for name, x in zip("qkv", (q, k, v), strict=True)
    )
    scale = problem.options.get("scale", q.shape[-1] ** -0.5)
    later = np.arange(k.shape[2]) > np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    output = np.empty((*q.shape[:3], v.shape[3]))
    for b, h in np.ndindex(q.shape[:2]):
        logits = np.where(later, -np.inf, scale * (q[b, h] @ k[b, h // group].T))
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        output[b, h] = p @ v[b, h // group] / p.sum(axis=1, keepdims=True)
    return output


def kernel(problem: Problem, edges: str) -> Float64:
    """What the gfx950 kernel writes, as float32."""
    config = Fp8Config(head_dim=problem.query.shape[3], edges=edges, output="f32")
    output, _, result = fp8_launch.run(config, *problem.tensors(), **problem.launch_options())
    assert result is not None and not result.findings, result and result.table()
    return output.astype(np.float64)


def bf16_kernel(problem: Problem) -> Float64:
    """The BF16 prefill kernel on the values of the codes, which bfloat16 has; scales go into the softmax and the output."""
    q, k, v = (x.astype(bfloat16) for x in (problem.query, problem.key, problem.value))
    scale = problem.options.get("scale", q.shape[-1] ** -0.5)
    output = np.empty((*q.shape[:3], v.shape[3]))
    group = q.shape[1] // k.shape[1]
    for b, h in np.ndindex(q.shape[:2]):
        kv = b, h // group
        factor = scale * problem.scales["q_scale"][b, h] * problem.scales["k_scale"][kv]
        one = {"query": q[b, h], "key": k[kv], "value": v[kv]}
        inputs = {name: np.ascontiguousarray(x[None, None]) for name, x in one.items()}
        got, _, result = prefill_launch.run(inputs, layout="BHSD", scale=float(factor))
        assert not result.findings, result.table()
        output[b, h] = got[0, 0].astype(np.float64) * problem.scales["v_scale"][kv]
    return output


def model_problem(problem: Problem, edges: str = "hilo") -> fp8_problem.Problem:
    """The same inputs for the models of tests/reference."""
    tensors = (problem.query, problem.key, problem.value)
    return fp8_problem.make_problem(*tensors, **problem.scales, **problem.options, fp8_edges=edges)


WITNESSES: dict[str, Callable[[Problem], NDArray[Any]]] = {
    "AITER v3 (model)": lambda problem: fp8_baselines.aiter_v3(model_problem(problem)),
    "Z-run (model)": lambda problem: fp8_baselines.z_run(model_problem(problem)),
    "kernel, none": lambda problem: kernel(problem, "none"),
    "kernel, hilo": lambda problem: kernel(problem, "hilo"),
    "CPU operator, hilo": lambda problem: cpu_answer(problem, "hilo")["output"],
    "BF16 prefill kernel": bf16_kernel,
}
FP8_WITNESSES = tuple(WITNESSES)[:4]


def squares(actual: NDArray[Any], expected: Float64) -> Float64:
    """(B, H, 2): sums of squares of the difference and of the expected output, for pooling."""
    return np.stack(
        [np.sum((actual - expected) ** 2, axis=(2, 3)), np.sum(expected**2, axis=(2, 3))], axis=-1
    )


def pooled(sums: Float64) -> float:
    """Relative Frobenius error over everything in `sums`."""
    difference, length = sums.reshape(-1, 2).sum(axis=0)
    return float(np.sqrt(difference / length))


@dataclass(frozen=True)
class Measured:
    """`sums` (heads, 2) as `squares` makes them, and the worst row."""

    sums: Float64
    worst_row: float

    @property
    def heads(self) -> Float64:
        """Relative error of every head by itself."""
        return np.sqrt(self.sums[:, 0] / self.sums[:, 1])


def measure(problems: Iterable[Problem], names: Iterable[str] = FP8_WITNESSES) -> dict[str, Measured]:
    """Some witnesses over all heads of all problems."""
    sums: dict[str, list[Float64]] = {name: [] for name in names}
    worst = dict.fromkeys(sums, 0.0)
    for problem in problems:
        expected = exact(problem)
        for name in sums:
            output = WITNESSES[name](problem)
            sums[name].append(squares(output, expected).reshape(-1, 2))
            worst[name] = max(worst[name], worst_row_error(output, expected))
    return {name: Measured(np.concatenate(parts), worst[name]) for name, parts in sums.items()}


def mean_ratio(measured: Measured, base: Measured) -> float:
    """Geometric mean over heads."""
    return float(np.exp(np.mean(np.log(measured.heads / base.heads))))


def print_families(heads: int) -> None:
    print(
        f"relative error against float64 of the same codes, {heads} heads of 128; behind AITER v3's as multiples of it"
    )
    print("| family | " + " | ".join(WITNESSES) + " |")
    print("|---" * (1 + len(WITNESSES)) + "|")
    for name in FAMILIES:
        found = measure([make_family(name, heads)], WITNESSES)
        aiter, *others = (pooled(one.sums) for one in found.values())
        cells = [f"{aiter:.2g}"] + [f"{error / aiter:.3f}" for error in others]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def print_captures(problems: list[Problem], names: Iterable[str]) -> None:
    found = measure(problems, names)
    base = next(iter(found.values()))
    print(f"SmolLM2-135M, {len(base.sums)} heads, every row of 2,048 tokens")
    print("| | pooled error | over AITER v3 | mean over heads | worst row |\n|---|---|---|---|---|")
    for name, one in found.items():
        error, ratio = pooled(one.sums), pooled(one.sums) / pooled(base.sums)
        print(f"| {name} | {error:.2e} | {ratio:.3f} | {mean_ratio(one, base):.3f} | {one.worst_row:.3f} |")


def main(words: list[str]) -> None:
    if words not in ([], ["--model"]):
        raise SystemExit(f"error: arguments: expected none or --model, got {' '.join(words)}")
    if words:
        print_captures([layer.problem() for layer in capture_model()], FP8_WITNESSES)
    else:
        print_families(heads=4)
        print_captures([load_sample().problem()], WITNESSES)


if __name__ == "__main__":
    main(sys.argv[1:])
