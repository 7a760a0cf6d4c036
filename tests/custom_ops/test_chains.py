"""Elementwise nodes around the operator, run back to back with changing inputs."""

from __future__ import annotations

import pytest
from custom_ops.chains import chain, inputs, runs_are_right
from custom_ops.op_session import make_session, run_attention, run_session
from reference.attention import attention

from zyfa_ort.numerics import TOLERANCES


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_fifty_runs_in_a_row(precision: str) -> None:
    model = chain(precision)
    assert runs_are_right(make_session(model, threads=2), lambda: make_session(model))


def test_the_chain_is_what_it_says() -> None:
    tensors = inputs(3)
    first = attention(tensors["query"] + 1, tensors["key"], tensors["value"]).output
    wanted = 2 * attention(first, tensors["key"], tensors["value"]).output
    output = run_session(make_session(chain("fp32")), tensors)["output"]
    assert not TOLERANCES["fp32"].violations(output, wanted)
    assert run_attention(tensors)["output"].shape == output.shape
