"""Random problems that have a kernel, run as chosen on the emulated device against the CPU operator."""

from __future__ import annotations

import pytest
from kernels.select.cases import check
from kernels.select.emulated_host import Ran
from kernels.select.random_cases import random_case


def run_random(seed: int) -> Ran:
    case = random_case(seed)
    return check(case.inputs, case.layout, out=case.out, **case.attributes)


@pytest.mark.parametrize("seed", range(40))
def test_random(seed: int) -> None:
    assert run_random(seed).choice.launches


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 1040))
def test_many_random(seed: int) -> None:
    assert run_random(seed).choice.launches
