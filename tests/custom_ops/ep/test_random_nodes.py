"""Random nodes on the emulated MI355X through ONNX Runtime: the bits of the choice, whose numbers other tests judge."""

from __future__ import annotations

import pytest
from custom_ops.gpu_session import run_attention_on_gpu
from custom_ops.op_session import onnx_type
from kernels.select.emulated_host import DTYPES, run
from kernels.select.random_cases import random_case


def compare(seed: int) -> None:
    case = random_case(seed)
    wanted_options = {"lse": True, "present_key": True, "present_value": True}
    if "key_mask" in case.inputs:
        wanted_options["key_mask"] = "unread"
    if case.out is not None:
        wanted_options["out_dtype"] = case.out
    wanted = run(case.inputs, case.layout, **wanted_options, **case.attributes)
    attributes = case.attributes | {"layout": case.layout}
    if case.out is not None:
        attributes["out_dtype"] = onnx_type(DTYPES[case.out])
    got = run_attention_on_gpu(case.inputs, ("output", "present_key", "present_value", "lse"), **attributes)
    for name, array in got.items():
        assert array.tobytes() == wanted[name].tobytes(), name


@pytest.mark.parametrize("seed", range(60))
def test_random(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 1060))
def test_many_random(seed: int) -> None:
    compare(seed)
