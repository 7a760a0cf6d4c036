"""A HIP device from Python: the emulated one, calls that fail, machines without one."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.emulator import hip_library_path

from zyfa_ort import hip
from zyfa_ort.errors import DeviceError, HipError

ADD = """
import struct, numpy as np
from zyfa_ort import hip
from zyfa_ort.errors import HipError
from zyfa_ort.kernels import code_objects

try:
    with hip.device() as device:
        a = np.arange(100, dtype=np.float32)
        addresses = [device.upload(x) for x in (a, 2 * a, 0 * a)]
        function = device.function(device.load(code_objects.load("selfcheck")), "vector_add")
        device.launch(function, (2,), (64,), struct.pack("<QQQi", *addresses, 100))
        device.synchronize("vector_add")
        total = device.download(addresses[2], a)
        device.free(addresses[0])
    print(np.array_equal(total, 3 * a))
except HipError as error:
    print(error)
"""


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZYFA_HIP_LIBRARY", hip_library_path())


def in_process(program: str, **environment: str) -> str:
    import os

    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "ZYFA_HIP_LIBRARY": hip_library_path(), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_kernel_runs() -> None:
    assert in_process(ADD) == "True"


def test_the_device_says_what_it_is(emulated: None) -> None:
    with hip.device() as device:
        assert device.emulated
        assert "emulated" in device.name
        assert device.architecture == "gfx950"
        assert device.driver >= 60000000


@pytest.mark.parametrize("array", [
    np.zeros((0, 3), np.float32), np.arange(6).reshape(2, 3).T, np.float64(3.5), np.arange(5, dtype=np.uint8)])  # fmt: skip
def test_arrays_come_back(emulated: None, array: np.ndarray) -> None:
    with hip.device() as device:
        back = device.download(device.upload(array), np.asarray(array))
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("device", "hipInit: hipErrorNoDevice, "),
        ("device:2", "hipGetDeviceCount: hipErrorNoDevice, "),
        ("malloc:2", "hipMalloc (400 bytes): hipErrorOutOfMemory, "),
        ("copy", "hipMemcpy: hipErrorInvalidValue, "),
        ("load", "hipModuleLoadData: hipErrorNoBinaryForGpu, "),
        ("function", "hipModuleGetFunction (vector_add): hipErrorNotFound, "),
        ("launch", "hipModuleLaunchKernel: hipErrorLaunchOutOfResources, "),
        ("run", "hipDeviceSynchronize (vector_add): hipErrorLaunchFailure, "),
        ("lost:6", "hipMalloc (400 bytes): hipErrorLaunchFailure, "),
    ],
)
def test_every_status_is_looked_at(fault: str, message: str) -> None:
    said = in_process(ADD, ZYFA_EMULATED_FAULT=fault)
    assert said.startswith(message), said
    assert "ZYFA_EMULATED_FAULT" in said and "\n" not in said


def test_the_first_failure_is_the_one_shown(emulated: None) -> None:
    """What cannot be freed any more does not hide why."""
    with pytest.raises(ZeroDivisionError), hip.device() as device:
        device._memory.append(12345)
        raise ZeroDivisionError
    with pytest.raises(HipError, match="hipFree"), hip.device() as device:
        device._memory.append(12345)


def test_a_kernel_that_is_not_there(emulated: None) -> None:
    with hip.device() as device:
        module = device.load(code_objects.load("selfcheck"))
        with pytest.raises(HipError, match=r"hipModuleGetFunction \(nothing\): hipErrorNotFound"):
            device.function(module, "nothing")
        with pytest.raises(HipError, match=r"hipModuleLaunchKernel: hipErrorInvalidValue"):
            device.launch(device.function(module, "vector_add"), (1,), (64,), struct.pack("<Q", 0))


def test_devices_that_are_not_there(emulated: None) -> None:
    with pytest.raises(DeviceError, match=r"HIP device 3: .* sees 1 devices"), hip.device(3):
        pass


def test_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZYFA_HIP_LIBRARY", str(tmp_path / "gone.so"))
    with pytest.raises(
        DeviceError, match=r"ZYFA_HIP_LIBRARY: expected the path of a HIP library, found no file"
    ):
        hip.Library()
    (tmp_path / "text.so").write_text("no library")
    monkeypatch.setenv("ZYFA_HIP_LIBRARY", str(tmp_path / "text.so"))
    with pytest.raises(DeviceError, match=r"none can be loaded .*; install ROCm, or point ZYFA_HIP_LIBRARY"):
        hip.Library()
    monkeypatch.delenv("ZYFA_HIP_LIBRARY")
    monkeypatch.setattr(hip, "LIBRARIES", ("libzyfa_no_such.so.7", "libzyfa_no_such.so.6"))
    with pytest.raises(
        DeviceError, match=r"expected one of libzyfa_no_such.so.7, libzyfa_no_such.so.6, none"
    ):
        hip.Library()


def test_a_library_that_is_not_hip(monkeypatch: pytest.MonkeyPatch) -> None:
    from zyfa_ort import library_path

    monkeypatch.setenv("ZYFA_HIP_LIBRARY", library_path())
    with pytest.raises(DeviceError, match="has no hipInit; expected the HIP library of ROCm 6 or 7"):
        hip.Library()
