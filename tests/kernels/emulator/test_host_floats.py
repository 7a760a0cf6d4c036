"""Results do not depend on the floating-point environment of the calling thread, which is left as it was."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_lanes

UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}


@pytest.fixture
def rounding_upward():
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    mode = UPWARD.get(platform.machine())
    if mode is None:
        pytest.skip("the number of FE_UPWARD is not known here")
    before = library.fegetround()
    assert library.fesetround(mode) == 0
    yield lambda: library.fegetround() == mode
    library.fesetround(before)


def test_a_host_that_rounds_upward(rounding_upward):
    a, b = np.full(64, 1, np.float32), np.full(64, 2**-30, np.float32)
    body = "  v_add_f32_e32 v40, v10, v11\n  v_exp_f32_e32 v41, v11\n  v_cvt_f64_f32_e32 v[20:21], v10\n"
    body += "  v_cvt_f64_f32_e32 v[22:23], v11\n  v_fma_f64 v[20:21], v[22:23], v[22:23], v[20:21]\n  v_mov_b32_e32 v42, v20\n"
    got = run_lanes(body, [a, b], outputs=3)
    assert (got[0].view(np.float32) == 1).all()
    assert (got[1].view(np.float32) == 1).all()
    assert (got[2] == 0).all()
    assert rounding_upward()
