"""Errors of the FP8 kernels, and of models of other kernels, against float64 attention on the same codes.

As a program, in tests/, it prints the table of docs/fp8_prefill.md: python -m kernels.asm.accuracy
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from kernels.asm.accuracy_families import FAMILIES, make_family
from kernels.asm.fp8_problems import Problem, cpu_answer
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from reference import fp8_baselines, fp8_problem
from zyfa_ort.kernels.asm.fp8_config import Fp8Config

from kernels.asm import fp8_launch
from kernels.hip import prefill_launch

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


def squares(actual: NDArray[Any], expected: Float64) -> Float64:
    """(B, H, 2): sums of squares of the difference and of the expected output, for pooling."""
    return np.stack(
        [np.sum((actual - expected) ** 2, axis=(2, 3)), np.sum(expected**2, axis=(2, 3))], axis=-1
    )


def pooled(sums: Float64) -> float:
    """Relative Frobenius error over everything in `sums`."""
    difference, length = sums.reshape(-1, 2).sum(axis=0)
    return float(np.sqrt(difference / length))


def errors(problem: Problem, names: Iterable[str]) -> dict[str, float]:
    """Pooled relative error of some witnesses."""
    expected = exact(problem)
    return {name: pooled(squares(WITNESSES[name](problem), expected)) for name in names}


def dropped(problem: Problem, dims: int) -> Problem:
    """The first `dims` of the values: what a head padded with zeros computes."""
    return replace(problem, value=np.ascontiguousarray(problem.value[..., :dims]))


def main(heads: int = 4) -> None:
    print(
        f"relative error against float64 of the same codes, {heads} heads of 128, emulated MI355X and this CPU"
    )
    print("| family | " + " | ".join(WITNESSES) + " |\n|---" * 1 + "|---" * len(WITNESSES) + "|")
    for name in FAMILIES:
        row = errors(make_family(name, heads), WITNESSES)
        aiter = row["AITER v3 (model)"]
        cells = [f"{aiter:.2e}"] + [f"{error / aiter:.3f}" for error in list(row.values())[1:]]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
