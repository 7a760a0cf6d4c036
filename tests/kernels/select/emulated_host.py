"""Does what a choice says on the emulated device: workspace, launches with the packed arguments."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from custom_ops.op_session import Array
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.asm.fp8_config import by_name
from zyfa_ort.kernels.asm.fp8_prefill import generate
from zyfa_ort.kernels.emulator import Device
from zyfa_ort.kernels.select import Choice, Launch, Problem, make_problem, select

DTYPES: dict[str, Any] = {
    "float": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
MASKS = {np.dtype(bool): "bool", np.dtype(np.int32): "int32", np.dtype(np.int64): "int64"}
UNWRITTEN = 0xCD


@functools.cache
def code_object(name: str) -> bytes:
    """As shipped; FP8 kernels that were not built are generated."""
    if name not in code_objects.names() and name.startswith("fp8_prefill"):
        return assemble(generate(by_name(name)), name)
    return code_objects.load(name)


def problem_of(inputs: Mapping[str, Array], layout: str = "BSHD", **rest: Any) -> Problem:
    """The problem of tensors named as the operator's inputs, in `layout`."""
    query, key, value = (inputs[name] for name in ("query", "key", "value"))
    head, row = (2, 1) if layout == "BSHD" else (1, 2)
    mask, bias, scale = inputs.get("key_mask"), inputs.get("attn_bias"), inputs.get("q_scale")
    granularity = None
    if scale is not None:
        granularity = "batch_head" if scale.ndim == 2 else "tensor" if scale.shape == (1,) else "head"
    if mask is not None:
        rest = {"key_mask": kind_of(mask), "mask_dtype": MASKS[mask.dtype]} | rest
    return make_problem(
        batch=query.shape[0],
        q_heads=query.shape[head],
        kv_heads=key.shape[head],
        q_len=query.shape[row],
        new_len=key.shape[row],
        past_len=inputs["past_key"].shape[2] if "past_key" in inputs else 0,
        qk_dim=query.shape[3],
        v_dim=value.shape[3],
        dtype=NAMES[query.dtype],
        layout=layout,
        scales=granularity,
        sinks="sinks" in inputs,
        bias=None if bias is None else (1,) * (4 - bias.ndim) + bias.shape,
        **rest,
    )


def kind_of(mask: Array) -> str:
    """ "range" when every batch entry's visible keys are one run, an empty one included."""
    edges = np.diff(np.pad((mask != 0).astype(np.int8), ((0, 0), (1, 1))), axis=1)
    return "range" if ((edges == 1).sum(axis=1) <= 1).all() else "holes"


def key_range(mask: Array) -> Array:
    ranges = np.zeros((mask.shape[0], 2), np.int32)
    for batch, row in enumerate(mask != 0):
        seen = np.flatnonzero(row)
        if seen.size:
            ranges[batch] = seen[0], seen[-1] + 1
    return ranges


@dataclass(frozen=True)
class Ran:
    problem: Problem
    choice: Choice
    tensors: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.tensors[name]


def run(inputs: Mapping[str, Array], layout: str = "BSHD", **rest: Any) -> Ran:
    """The choice for these inputs, executed; outputs are among the tensors."""
    problem = problem_of(inputs, layout, **rest)
    choice = select(problem)
    tensors = {
        ("bias" if name == "attn_bias" else name): np.ascontiguousarray(x) for name, x in inputs.items()
    }
    if "key_mask" in tensors:
        tensors["key_range"] = key_range(tensors["key_mask"])
    tensors |= _outputs(problem, layout)
    execute(choice, tensors, "truncate" if problem.byte_rounding == "truncate" else "nearest_even")
    return Ran(problem, choice, tensors)


def execute(choice: Choice, tensors: dict[str, Array], byte_rounding: str = "nearest_even") -> None:
    """The launches in order, in a workspace of their own; nothing is found, not even a warning."""
    tensors["workspace"] = np.full(max(choice.workspace_bytes, 1), UNWRITTEN, np.uint8)
    device = Device()
    tensors["status"] = np.zeros(1, np.int32)
    for step in choice.launches:
        result = device.launch(
            code_object(step.row.code_object),
            step.row.kernel,
            step.grid,
            step.block,
            _packed(step, device, tensors),
            byte_rounding=byte_rounding,
        )
        assert not result.findings, result.table()


def _outputs(p: Problem, layout: str) -> dict[str, Array]:
    sizes = (p.q_len, p.q_heads) if layout == "BSHD" else (p.q_heads, p.q_len)
    cache = (p.batch, p.kv_heads, p.kv_len)
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "output": (DTYPES[p.out_dtype], (p.batch, *sizes, p.v_dim))
    }
    if p.lse:
        shapes["lse"] = (np.float32, (p.batch, p.q_heads, p.q_len))
    for name, dim in (("present_key", p.qk_dim), ("present_value", p.v_dim)):
        if getattr(p, name):
            shapes[name] = (DTYPES[p.dtype], (*cache, dim))
    return {
        name: np.full(math.prod(shape) * np.dtype(dtype).itemsize, UNWRITTEN, np.uint8)
        .view(dtype)
        .reshape(shape)
        for name, (dtype, shape) in shapes.items()
    }


def _packed(launch: Launch, device: Device, tensors: Mapping[str, Array]) -> bytes:
    block = bytearray(launch.arguments)
    for offset, at in launch.pointers:
        tensor = tensors[at.buffer]
        # Any address will do where there is nothing: a kernel that touched it would be found out.
        address = device.address(tensor, at.buffer) + at.offset if tensor.size else 1 << 20
        struct.pack_into("<Q", block, offset, address)
    return bytes(block)
