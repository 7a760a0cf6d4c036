"""One source, two machines: random programs give the same bits on the emulated chip and on this host."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from kernels.emulator.random_lanes import PRELUDE, Lanes
from kernels.emulator.random_programs import (
    RESULTS,
    SHARED,
    WORDS_OUT,
    Program,
    device_code,
    host_library,
    inputs,
)
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import launch

# Places where clang's own code reads what nobody wrote and drops it, or where it accesses memory unaligned: the
# emulator is stricter than that. What is computed must be right all the same.
STRICTER = {"undefined_register", "misaligned"}

# Programs that clang 22 gets wrong, by its own assembly text: 0 - x becomes -x where constants make the zero, the upper
# half of ~clz(64 bits) is a register nobody wrote, v19 | ~0 is v19; and it fails on a bf16 copysign of an f16.
CLANG_WRONG = {188, 317, 412, 421, 442, 477, 575}


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def compare(numbers: range, folder, items: int = 128) -> None:
    seeds = [seed for seed in numbers if seed not in CLANG_WRONG]
    programs = [Program(seed, f"p{seed}") for seed in seeds]
    library, code = host_library(programs, folder), device_code(programs)
    for seed in seeds:
        name = f"run_p{seed}"
        data = inputs(items, seed)
        want, got = (np.zeros((items, WORDS_OUT), np.uint64) for _ in range(2))
        want_shared, got_shared = (np.arange(SHARED, dtype=np.uint64) << np.uint64(40) for _ in range(2))
        getattr(library, name)(pointer(data), pointer(want), pointer(want_shared), items)
        arguments = [data, got, got_shared]
        result = launch(code, name, items // 64, 64, arguments, report_only=True, max_instructions=3_000_000)
        assert [f for f in result.findings if f.rule not in STRICTER] == [], name
        np.testing.assert_array_equal(got[:, :RESULTS], want[:, :RESULTS], name)
        np.testing.assert_array_equal(got_shared, want_shared, name)


def test_programs(tmp_path):
    compare(range(10), tmp_path)


def compare_lanes(seeds: range) -> None:
    kernels = [Lanes(seed, f"lanes{seed}") for seed in seeds]
    code = compile_hip(PRELUDE + "".join(one.source for one in kernels), "lanes")
    x = np.random.default_rng(seeds.start).integers(0, 2**32, 64, dtype=np.uint32)
    for one in kernels:
        got = np.zeros(64, np.uint32)
        result = launch(code, one.name, 1, 64, [x, got])
        assert result.findings == (), one.name
        np.testing.assert_array_equal(got, one.model(x), one.name)


def test_lanes():
    compare_lanes(range(20))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 600, 10))
def test_more_programs(first, tmp_path):
    compare(range(first, first + 10), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 20))
def test_more_lanes(first):
    compare_lanes(range(first, first + 20))
