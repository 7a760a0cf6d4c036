"""Launches whose size counts work-items: hipExtModuleLaunchKernel, as MIGraphX calls it."""

from __future__ import annotations

import ctypes
import struct
from ctypes import byref, c_float, c_size_t, c_uint, c_void_p

import numpy as np
import pytest
from kernels.emulator.hip_api import INVALID_CONFIGURATION, INVALID_VALUE, Hip
from kernels.emulator.hip_kernels import VECTOR_ADD, code_object
from kernels.emulator.test_launch_api import POINTER, STORE_ARGUMENT, with_arguments

# A C++ function in HIP's headers.
NAME = "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j"
MEETING = VECTOR_ADD.replace("  v_add_f32_e32 v2", "  s_barrier\n  v_add_f32_e32 v2")


def launch(hip: Hip, function: int, items: int, block: int, arguments, start=None, stop=None, flags=0) -> int:
    values = [c_void_p(a) for a in arguments]
    parameters = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    sizes = [c_uint(n) for n in (items, 1, 1, block, 1, 1)]
    events = [c_void_p(start), c_void_p(stop), c_uint(flags)]
    return getattr(hip.library, NAME)(
        c_void_p(function), *sizes, c_size_t(0), None, parameters, None, *events
    )


@pytest.mark.parametrize("body", [VECTOR_ADD, MEETING])
@pytest.mark.parametrize(("items", "block"), [(150, 64), (64, 64), (1, 64), (8960, 64)])
def test_the_last_block_is_as_small_as_it_must_be(body, items, block):
    """Arrays end with the last work-item: one more would read past them, which is an error. Waves meet those that exist."""
    hip = Hip()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(items).astype(np.float32) for _ in range(2))
    places = [hip.upload(array) for array in (a, b, np.zeros_like(a))]
    function = hip.function(code_object(body))
    assert launch(hip, function, items, block, places) == 0
    hip.DeviceSynchronize()
    np.testing.assert_array_equal(hip.download(places[2], a), a + b)
    for place in places:
        hip.Free(place)


def test_events_around_it():
    hip = Hip()
    start, stop = (hip.made("EventCreate") for _ in range(2))
    ones = np.ones(64, np.float32)
    places = [hip.upload(ones) for _ in range(3)]
    assert launch(hip, hip.function(code_object(VECTOR_ADD)), 64, 64, places, start, stop) == 0
    hip.EventSynchronize(stop)
    elapsed = c_float(-1)
    hip.EventElapsedTime(byref(elapsed), start, stop)
    assert elapsed.value >= 0
    np.testing.assert_array_equal(hip.download(places[2], ones), ones + ones)


def test_what_a_kernel_is_told_about_it():
    """150 work-items in blocks of 64: 2 whole ones, and 22 in the last."""
    kinds = ("block_count_x, .size: 4", "remainder_x, .size: 2")
    hidden = [
        f".name: h{at}, .offset: {8 + 4 * at}, .value_kind: hidden_{kind}" for at, kind in enumerate(kinds)
    ]
    hip = Hip()
    out = np.zeros(2, np.uint32)
    place = hip.upload(out)
    function = hip.function(with_arguments(STORE_ARGUMENT, POINTER, *hidden))
    for items, told in ((150, (2, 22)), (128, (2, 0))):
        assert launch(hip, function, items, 64, [place]) == 0
        hip.DeviceSynchronize()
        assert struct.unpack("<II", hip.download(place, out).tobytes()) == told


@pytest.mark.parametrize(
    ("items", "block", "flags", "code"),
    [
        (64, 0, 0, INVALID_CONFIGURATION),
        (0, 64, 0, INVALID_CONFIGURATION),
        (2048, 2048, 0, INVALID_CONFIGURATION),
        (64, 64, 1, INVALID_VALUE),
    ],
)
def test_refusals(items, block, flags, code):
    hip = Hip()
    function = hip.function(code_object(VECTOR_ADD))
    assert launch(hip, function, items, block, [0, 0, 0], flags=flags) == code
    assert hip.report().startswith("hipExtModuleLaunchKernel: ")


def test_device_pointers_of_host_memory():
    hip = Hip()
    host = c_void_p()
    hip.HostMalloc(byref(host), 64, 0)
    assert hip.made("HostGetDevicePointer", host, 0) == host.value
    assert hip.code("HostGetDevicePointer", byref(c_void_p()), hip.upload(np.zeros(4)), 0) == INVALID_VALUE
    assert "expected memory of hipHostMalloc or hipHostRegister" in hip.report()
    hip.HostFree(host)
