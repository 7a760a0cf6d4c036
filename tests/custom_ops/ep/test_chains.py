"""Two attention nodes on the device between elementwise nodes on the CPU: right every time, copied no more than needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from custom_ops.chains import chain, inputs, operators, runs_are_right
from custom_ops.gpu_session import gpu_session, options_for
from custom_ops.op_session import make_session, ort, run_session

from zyfa_ort.numerics import TOLERANCES


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_fifty_runs_in_a_row(precision: str) -> None:
    model = chain(precision)
    assert runs_are_right(gpu_session(model), lambda: gpu_session(model))
    got, wanted = (run_session(s, inputs(3))["output"] for s in (gpu_session(model), make_session(model)))
    bound = {"bf16": "bf16", "fp8": "fp8_model"}[precision]
    doubled = [sentence for sentence in TOLERANCES[bound].violations(got / 2, wanted / 2)]
    assert not doubled


def test_copies_of_a_run(tmp_path: Path) -> None:
    """The shifted query goes there, the second output comes back; what both nodes share is copied once, by the feeds."""
    options = options_for()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(chain("bf16").SerializeToString(), options)
    for seed in range(3):
        run_session(session, inputs(seed))
    assert operators(session) == {
        "Add": 3, "MemcpyFromHost": 3, "ZyfaPrefillAttention": 6, "MemcpyToHost": 3, "Mul": 3,
    }  # fmt: skip
