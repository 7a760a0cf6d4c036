"""The same bits from every kernel, launch after launch, in any order of workgroups and waves."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from zyfa_ort.kernels.asm.fp8_config import Fp8Config, shipped
from zyfa_ort.kernels.emulator import Device

from kernels.asm import fp8_launch, fp8_problems
from kernels.hip import decode_launch, prefill_launch, quantize_launch

ALL_LAUNCHES = 7200


@dataclass(frozen=True)
class Job:
    """A problem; `run(order_seed)` launches it `launches` times and returns every byte that it wrote."""

    name: str
    run: Callable[[int], bytes]
    launches: int = 1


# Lengths beside the tiles, hidden tiles, rows without keys, scores that move anchors.
FP8_PROBLEMS: list[dict[str, Any]] = [
    {"q_len": 257, "heads": 2, "family": "rising"},
    {
        "q_len": 70,
        "kv_len": 200,
        "heads": 4,
        "family": "heavy",
        "batch": 2,
        "key_range": [[70, 130], [0, 200]],
    },
    {"q_len": 129, "kv_len": 65, "family": "outlier", "window_left": 40},
]


def fp8(config: Fp8Config, problem: fp8_problems.Problem, seed: int) -> bytes:
    output, lse, result = fp8_launch.run(
        config, *problem.tensors(), options={"order_seed": seed}, **problem.launch_options()
    )
    assert result is not None and not result.findings and lse is not None
    return output.tobytes() + lse.tobytes()


def bf16(tensors: dict[str, Any], options: dict[str, Any], seed: int) -> bytes:
    output, lse, result = prefill_launch.run(tensors, order_seed=seed, **options)
    assert not result.findings and lse is not None
    return output.tobytes() + lse.tobytes()


def decode(problem: decode_launch.Problem, rows_per_tile: int, seed: int) -> bytes:
    job = decode_launch.Decoding(problem, 3, rows_per_tile)
    device = Device()
    for kernel, grid, block in job.launches:
        result = device.launch(
            prefill_launch.code(decode_launch.SOURCE), kernel, grid, block, job.buffers(),
            kernarg=job.packed, order_seed=seed,
        )  # fmt: skip
        assert not result.findings
    return job.out.tobytes() + job.lse.tobytes()


def quantise(x: Any, rotation: str, seed: int) -> bytes:
    job = quantize_launch.Quantization(x, rotation=rotation)
    device = Device()
    for kernel in job.kernels():
        result = device.launch(
            prefill_launch.code(quantize_launch.SOURCE), kernel, job.grid, quantize_launch.ITEMS, job.buffers(),
            kernarg=job.packed, order_seed=seed,
        )  # fmt: skip
        assert not result.findings
    return job.codes.tobytes() + job.scale.tobytes()


def jobs(configs: list[Fp8Config]) -> list[Job]:
    rng = np.random.default_rng(0)
    made = []
    for config, options in itertools.product(configs, FP8_PROBLEMS):
        problem = fp8_problems.make_problem(**options, head_dim=config.head_dim)
        name = f"{config.name}, {options['q_len']} rows"
        made.append(Job(name, functools.partial(fp8, config, problem)))
    for dims, general in itertools.product(prefill_launch.KERNELS, (False, True)):
        tensors = prefill_launch.gaussian((1, 2, 1), 130, 130, dims)
        options = {"softcap": 20.0} if general else {}
        name = f"bf16_prefill {dims}{' general' * general}"
        made.append(Job(name, functools.partial(bf16, tensors, options)))
    for dims, dtype, rows in itertools.product(decode_launch.HEAD_DIMS, (bfloat16, float8_e4m3fn), (16, 32)):
        q = rng.standard_normal((1, 2, 4, dims[0])).astype(bfloat16)
        k, v = (rng.standard_normal((1, 300, 2, dim)).astype(dtype) for dim in dims)
        step = functools.partial(decode, decode_launch.Problem(q, k, v), rows)
        made.append(Job(f"decode {dims} {np.dtype(dtype)} {rows}", step, 2))
    for dtype, rotation in itertools.product(quantize_launch.NAMES, ("none", "hadamard")):
        x = rng.standard_normal((1, 70, 2, 128)).astype(dtype)
        made.append(Job(f"quantize {dtype} {rotation}", functools.partial(quantise, x, rotation), 2))
    return made


def launched(jobs: list[Job], at_least: int) -> int:
    """Rounds over all jobs, natural order and a new shuffled one in turn, until so many launches were made; their number."""
    first: dict[str, bytes] = {}
    count = 0
    for round_ in itertools.count():
        seed = (round_ + 1) // 2 if round_ % 2 else 0
        for job in jobs:
            written = job.run(seed)
            assert written == first.setdefault(job.name, written), f"{job.name}, order {seed}"
            count += job.launches
            if count >= at_least:
                return count
    raise AssertionError


def test_some_hundred_launches_give_the_same_bits() -> None:
    """One type of output for the FP8 kernels: each has to be assembled first."""
    assert launched(jobs([config for config in shipped() if config.output == "bf16"]), 400) >= 400


@pytest.mark.slow
def test_7200_launches_give_the_same_bits() -> None:
    assert launched(jobs(shipped()), ALL_LAUNCHES) >= ALL_LAUNCHES


def test_a_kernel_that_depends_on_its_order_is_found() -> None:
    orders = Job("the order itself", lambda seed: bytes([seed]))
    with pytest.raises(AssertionError, match="the order itself, order 1"):
        launched([orders], 10)
