"""Random problems over everything that a choice looks at; most of them have a kernel."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from zyfa_ort.kernels.select import NoKernelError, Problem, Strides, make_problem, select

DIMS = [(64, 64), (128, 128), (192, 128), (256, 256)]
ODD_DIMS = [(80, 80), (128, 64), (0, 0), (64, 0), (96, 96)]
LENGTHS = [0, 1, 2, 15, 16, 17, 64, 255, 256, 257, 1000, 4096, 32768]


def random_problem(seed: int) -> Problem:
    rng = random.Random(seed)
    seldom = lambda usual, *others: rng.choice(others) if rng.random() < 0.06 else usual  # noqa: E731
    dtype = rng.choice(["bfloat16", "bfloat16", "float8e4m3fn", "float8e4m3fn", "float16", "float"])
    precision = "fp8" if dtype == "float8e4m3fn" else rng.choice(["bf16", "fp8"])
    qk_dim, v_dim = rng.choice(DIMS if precision == "bf16" or rng.random() < 0.3 else DIMS[1:3])
    if rng.random() < 0.04:
        qk_dim, v_dim = rng.choice(ODD_DIMS)
    kv_heads = seldom(rng.choice([1, 2, 3, 8]), 0, 70000)
    batch = seldom(rng.choice([1, 2, 5]), 0, 70000)
    q_heads = kv_heads * rng.choice([1, 2, 3, 7, 8, 16])
    q_len, new_len = rng.choice(LENGTHS), rng.choice(LENGTHS)
    if rng.random() < 0.02:
        new_len = rng.choice([2**26 + 1, 2**31, 2**33])
    past_len = rng.choice([0, 0, 0, 1, 100, 4097])
    quantised = dtype == "float8e4m3fn"
    options: dict[str, Any] = {}
    if seldom(False, True):
        options["softcap"] = rng.choice([30.0, 0.1, 1e-3, 1 / 3, 12345678.0])
    if seldom(False, True):
        full = (batch, q_heads, q_len, past_len + new_len)
        options["bias"] = tuple(rng.choice([1, size]) for size in full)
    p = make_problem(
        batch=batch,
        q_heads=q_heads,
        kv_heads=kv_heads,
        q_len=q_len,
        new_len=new_len,
        past_len=past_len,
        qk_dim=qk_dim,
        v_dim=v_dim,
        dtype=dtype,
        out_dtype=rng.choice(["float", "float16", "bfloat16"]) if quantised else None,
        precision=seldom(precision, "fp32", "bf16"),
        layout=rng.choice(["BSHD", "BHSD"]),
        scale=rng.choice([None, None, None, 0.0, -0.1, 0.69, 0.7, 1e-37, 9e-38, 1.0]),
        scales=rng.choice(["tensor", "head", "batch_head"]) if quantised else None,
        is_causal=rng.random() < 0.7,
        causal_alignment=rng.choice(["bottom_right", "top_left"]),
        window_left=rng.choice([-1, -1, -1, 0, 1, 100, 2**40]),
        fp8_edges=seldom(rng.choice(["hilo", "none"]), "bf16"),
        rotation=rng.choice(["none", "hadamard"]),
        mask_dtype=rng.choice(["bool", "int32", "int64"]),
        key_mask=seldom(rng.choice(["none", "range", "unread"]), "holes"),
        arch=seldom("gfx950", "gfx950:sramecc+:xnack-", "gfx942", ""),
        byte_rounding=seldom(rng.choice(["unknown", "nearest"]), "truncate", "other"),
        **{name: rng.random() < 0.5 for name in ("sinks", "lse", "present_key", "present_value")},
        **options,
    )
    if rng.random() < 0.05:
        name = rng.choice(["query", "key", "value", "output"])
        step = rng.choice([1, 8, 2**24, 2**25, 2**31, 2**32])
        axis = rng.choice(["batch", "head", "row"])
        p = replace(p, **{name: replace(getattr(p, name), **{axis: step})})
    if p.bias is not None and rng.random() < 0.3:
        p = replace(p, bias=Strides(0, 0, 2**25 + rng.choice([-1, 0]), 1))
    return p


def python_choice(p: Problem) -> str:
    try:
        return str(select(p))
    except NoKernelError as refusal:
        return f"refused: {refusal}"
