"""The emulated HIP device as a program meets it: memory, order, errors, planted faults, its list of symbols."""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import threading
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import numpy as np
import pytest
from kernels.emulator.hip_api import Hip, HipError, in_process
from kernels.emulator.hip_kernels import SLOW, TOO_EARLY, VECTOR_ADD, code_object
from zyfa_ort.kernels.emulator import hip_library_path

from kernels.emulator import hip_api

ROOT = Path(__file__).parents[3]
N = 256

# What clang calls in programs with kernels in them.
OF_COMPILERS = {
    f"__hip{name}"
    for name in (
        "RegisterFatBinary", "UnregisterFatBinary", "RegisterFunction", "RegisterVar", "PushCallConfiguration",
        "PopCallConfiguration",
    )
}  # fmt: skip
ENTRY_POINTS = re.findall(
    r"\w+",
    """
Init RuntimeGetVersion DriverGetVersion GetDeviceCount SetDevice GetDevice GetDeviceProperties
GetDevicePropertiesR0000 GetDevicePropertiesR0600 DeviceGetAttribute DeviceCanAccessPeer DeviceSynchronize
GetLastError PeekAtLastError GetErrorName GetErrorString Malloc MallocAsync Free FreeAsync HostMalloc HostFree
HostRegister HostUnregister HostGetDevicePointer MemGetInfo PointerGetAttributes Memcpy MemcpyAsync MemcpyWithStream MemcpyHtoD
MemcpyDtoH MemcpyDtoD MemcpyHtoDAsync MemcpyDtoHAsync MemcpyDtoDAsync Memset MemsetAsync MemsetD32 MemsetD32Async
StreamCreate StreamCreateWithFlags StreamCreateWithPriority StreamDestroy StreamSynchronize StreamQuery
StreamGetFlags StreamWaitEvent EventCreate EventCreateWithFlags EventDestroy EventRecord EventQuery EventSynchronize
EventElapsedTime StreamBeginCapture StreamEndCapture StreamIsCapturing GraphInstantiate GraphInstantiateWithFlags
GraphLaunch GraphDestroy GraphExecDestroy StreamGetCaptureInfo GetStreamDeviceId LaunchHostFunc LaunchKernel
Memcpy2DAsync ModuleLoad ModuleLoadData ModuleLoadDataEx ModuleUnload ModuleGetFunction
ModuleGetGlobal FuncGetAttribute ModuleOccupancyMaxActiveBlocksPerMultiprocessor ModuleLaunchKernel
ExtModuleLaunchKernel
""",
)


@pytest.fixture(scope="module")
def hip():
    return Hip()


@pytest.fixture
def stream(hip):
    made = hip.made("StreamCreateWithFlags", 1)
    yield made
    hip.StreamDestroy(made)


def floats(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N).astype(np.float32)


# ---- what it exports and says about itself ---------------------------------------------------------------------------


def test_it_exports_these_symbols_and_no_others():
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", hip_library_path()], capture_output=True, text=True, check=True
    ).stdout
    exported = {re.sub(r"^_Z24(hip\w+?)P18.*", r"\1", line.split()[-1]) for line in listing.splitlines()}
    assert exported == {f"hip{name}" for name in ENTRY_POINTS} | OF_COMPILERS | {"zyfa_emulated_last_report"}


def test_the_page_names_every_entry_point():
    page = (ROOT / "docs/emulator.md").read_text(encoding="utf-8")
    assert not [name for name in ENTRY_POINTS if f"hip{name}`" not in page]
    assert not [name for name in OF_COMPILERS if f"`{name}`" not in page]


def test_the_page_names_every_fault():
    page = (ROOT / "docs/emulator.md").read_text(encoding="utf-8")
    table = (ROOT / "kernels/emulator/hip/faults.def").read_text(encoding="utf-8")
    names = re.findall(r"ZYFA_FAULT\((\w+)", table)
    assert names
    assert not [name for name in names if f"`{name}`" not in page]


def test_numbers_are_those_of_rocm():
    theirs = pytest.importorskip("tinygrad.runtime.autogen.hip")
    table = (ROOT / "kernels/emulator/hip/errors.def").read_text(encoding="utf-8")
    for name, number in re.findall(r"ZYFA_HIP_ERROR\((\w+), (\d+),", table):
        assert getattr(theirs, name) == int(number)
    attributes = (ROOT / "kernels/emulator/hip/properties.cc").read_text(encoding="utf-8")
    rows = re.findall(r"\{(\d+), \w+\}, +// (\w+)", attributes)
    assert len(rows) > 40
    for number, name in rows:
        assert getattr(theirs, f"hipDeviceAttribute{name}") == int(number)


def test_properties_have_the_layout_of_rocm(hip):
    theirs = pytest.importorskip("tinygrad.runtime.autogen.hip").hipDeviceProp_tR0600
    raw = ctypes.create_string_buffer(b"\xff" * (theirs.SIZE + 8), theirs.SIZE + 8)
    hip.GetDevicePropertiesR0600(raw, 0)
    assert raw.raw[theirs.SIZE :] == b"\xff" * 8
    properties = theirs.from_buffer_copy(raw.raw[: theirs.SIZE])
    text = {name: bytes(getattr(properties, name)).split(b"\0")[0] for name in ("name", "gcnArchName")}
    assert text == {"name": b"emulated gfx950 (MI355X)", "gcnArchName": b"gfx950:sramecc+:xnack-"}
    assert properties.multiProcessorCount == 256
    assert properties.warpSize == 64
    assert properties.sharedMemPerBlock == properties.sharedMemPerBlockOptin == 163840
    assert properties.maxSharedMemoryPerMultiProcessor == 163840
    assert (properties.major, properties.minor) == (9, 5)


def test_properties_of_the_older_layout(hip):
    raw = ctypes.create_string_buffer(4096)
    hip.GetDeviceProperties(raw, 0)
    assert raw.raw.startswith(b"emulated gfx950 (MI355X)\0")
    assert raw.raw[396:].startswith(b"gfx950:sramecc+:xnack-\0")
    assert int.from_bytes(raw.raw[336:340], "little") == 256


def test_device_questions(hip):
    value = c_int(-1)
    hip.Init(0)
    hip.GetDeviceCount(byref(value))
    assert value.value == 1
    hip.GetDevice(byref(value))
    assert value.value == 0
    hip.DeviceGetAttribute(byref(value), 63, 0)
    assert value.value == 256
    hip.DeviceCanAccessPeer(byref(value), 0, 0)
    assert value.value == 0
    hip.RuntimeGetVersion(byref(value))
    assert value.value // 10_000_000 == 7
    assert hip.code("SetDevice", 1) == hip_api.INVALID_DEVICE
    assert hip.code("DeviceGetAttribute", byref(value), 123456, 0) == hip_api.INVALID_VALUE
    assert hip.code("GetDeviceCount", 0) == hip_api.INVALID_VALUE


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_copies_and_fills(hip):
    data = np.arange(N, dtype=np.uint32)
    pointer = hip.upload(data)
    assert pointer < 2**48
    np.testing.assert_array_equal(hip.download(pointer, data), data)
    hip.Memset(pointer + 4, 0x1FF, 4)
    hip.MemsetD32(pointer + 8, 0x12345678, 2)
    hip.MemcpyDtoD(pointer + 64, pointer, 16)
    got = hip.download(pointer, data)
    expected = data.copy()
    expected[1:4] = 0xFFFFFFFF, 0x12345678, 0x12345678
    expected[16:20] = expected[:4]
    np.testing.assert_array_equal(got, expected)
    hip.Free(pointer)


def test_copies_with_a_pitch(hip, stream):
    source = np.arange(60, dtype=np.uint8).reshape(5, 12)
    there = hip.upload(source)
    target = np.full((4, 9), 99, np.uint8)
    hip.Memcpy2DAsync(c_void_p(target.ctypes.data), 9, there, 12, 7, 4, hip_api.DEVICE_TO_HOST, stream)
    np.testing.assert_array_equal(target[:, :7], source[:4, :7])
    assert (target[:, 7:] == 99).all()
    codes = [
        hip.code(
            "Memcpy2DAsync", c_void_p(target.ctypes.data), 9, there, 12, *size, hip_api.DEVICE_TO_HOST, stream
        )
        for size in ((10, 4), (7, 6), (7, 0))
    ]
    assert codes == [hip_api.INVALID_PITCH, hip_api.INVALID_VALUE, 0]


def test_memory_is_accounted_for(hip):
    free, total = c_size_t(), c_size_t()
    hip.MemGetInfo(byref(free), byref(total))
    before = free.value
    pointer = hip.made("Malloc", 12345)
    hip.MemGetInfo(byref(free), byref(total))
    assert before - free.value == 12345
    hip.Free(pointer)
    hip.MemGetInfo(byref(free), byref(total))
    assert free.value == before
    assert hip.code("Malloc", byref(c_void_p()), total.value + 1) == hip_api.OUT_OF_MEMORY
    assert hip.made("Malloc", 0) == 0


def test_fresh_memory_is_not_zero(hip):
    pointer = hip.made("Malloc", 64)
    assert set(hip.download(pointer, np.zeros(64, np.uint8))) == {0xCD}
    hip.Free(pointer)


@pytest.mark.parametrize("access", ["ctypes.string_at(p, 1)", "ctypes.memset(p + 100, 0, 1)"])
def test_the_host_cannot_touch_device_memory(access):
    done = in_process(f"p = hip.made('Malloc', 4096)\n{access}")
    assert done.returncode == -signal.SIGSEGV


def test_pinned_memory_is_the_hosts_and_the_devices(hip):
    pinned = hip.made("HostMalloc", 4 * N, 0)
    (ctypes.c_float * N).from_address(pinned)[:] = list(range(N))
    out = hip.made("Malloc", 4 * N)
    function = hip.function(code_object(VECTOR_ADD))
    assert hip.launch(function, N // 64, 64, [pinned, pinned, out]) == 0
    np.testing.assert_array_equal(
        hip.download(out, np.zeros(N, np.float32)), 2 * np.arange(N, dtype=np.float32)
    )
    hip.HostFree(pinned)
    assert hip.code("HostFree", pinned) == hip_api.INVALID_VALUE
    hip.Free(out)


def test_pointer_attributes(hip):
    device, host = hip.made("Malloc", 64), hip.made("HostMalloc", 64, 0)
    row = (c_int * 8)()
    hip.PointerGetAttributes(row, device + 10)
    assert list(row[:2]) == [2, 0]
    hip.PointerGetAttributes(row, host)
    assert row[0] == 1
    assert hip.code("PointerGetAttributes", row, np.zeros(4)) == hip_api.INVALID_VALUE
    assert row[0] == 0
    hip.Free(device)
    hip.HostFree(host)


def test_wrong_copies_are_refused(hip):
    data = floats()
    pointer = hip.upload(data)
    code = hip.code
    assert code("Memcpy", data, pointer, 4, hip_api.HOST_TO_DEVICE) == hip_api.INVALID_VALUE
    assert code("Memcpy", pointer, pointer, 4, hip_api.HOST_TO_DEVICE) == hip_api.INVALID_DIRECTION
    assert code("Memcpy", data, data, 4, hip_api.DEVICE_TO_HOST) == hip_api.INVALID_VALUE
    assert code("Memcpy", pointer, data, 4, 7) == hip_api.INVALID_DIRECTION
    assert code("Memcpy", pointer, data, 4 * N + 1, hip_api.HOST_TO_DEVICE) == hip_api.INVALID_VALUE
    assert "beyond the allocation" in hip.report()
    assert code("Memcpy", pointer, 0, 4, hip_api.HOST_TO_DEVICE) == hip_api.INVALID_VALUE
    assert code("Memset", pointer + 4 * N, 0, 1) == hip_api.INVALID_VALUE
    assert code("MemsetD32", pointer + 2, 0, 1) == hip_api.INVALID_VALUE
    assert code("Memcpy", 0, 0, 0, hip_api.HOST_TO_DEVICE) == 0
    hip.Free(pointer)
    assert code("Free", pointer) == hip_api.INVALID_VALUE
    assert code("Free", 0) == 0


def test_registered_memory(hip):
    data = floats()
    hip.HostRegister(data, data.nbytes, 0)
    assert hip.code("HostRegister", data, data.nbytes, 0) == 712
    out = hip.made("Malloc", data.nbytes)
    assert hip.launch(hip.function(code_object(VECTOR_ADD)), N // 64, 64, [data.ctypes.data] * 2 + [out]) == 0
    np.testing.assert_array_equal(hip.download(out, data), data + data)
    hip.HostUnregister(data)
    assert hip.code("HostUnregister", data) == 713
    hip.Free(out)


# ---- kernels ---------------------------------------------------------------------------------------------------------


def test_vector_add_end_to_end(hip, stream):
    a, b = floats(1), floats(2)
    pa, pb, pc = hip.upload(a, stream), hip.upload(b, stream), hip.made("Malloc", a.nbytes)
    assert hip.launch(hip.function(code_object(VECTOR_ADD)), N // 64, 64, [pa, pb, pc], stream) == 0
    hip.StreamSynchronize(stream)
    np.testing.assert_array_equal(hip.download(pc, a), a + b)
    for pointer in (pa, pb, pc):
        hip.Free(pointer)


def test_packed_arguments(hip):
    a, b = floats(1), floats(2)
    pa, pb, pc = hip.upload(a), hip.upload(b), hip.made("Malloc", a.nbytes)
    function = hip.function(code_object(VECTOR_ADD))
    packed = (c_void_p * 3)(pa, pb, pc)
    size = c_size_t(24)
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 3)
    sizes = [N // 64, 1, 1, 64, 1, 1, 0]
    hip.ModuleLaunchKernel(function, *sizes, 0, 0, extra)
    np.testing.assert_array_equal(hip.download(pc, a), a + b)
    size.value = 16
    assert hip.code("ModuleLaunchKernel", function, *sizes, 0, 0, extra) == hip_api.INVALID_VALUE
    assert "takes 24" in hip.report()
    assert hip.code("ModuleLaunchKernel", function, *sizes, 0, packed, extra) == hip_api.INVALID_VALUE
    assert hip.code("ModuleLaunchKernel", function, *sizes, 0, 0, 0) == hip_api.INVALID_VALUE


def test_questions_about_a_kernel(hip):
    function = hip.function(code_object(VECTOR_ADD))
    value = c_int()
    hip.FuncGetAttribute(byref(value), 4, function)
    assert value.value == 512
    hip.FuncGetAttribute(byref(value), 0, function)
    assert value.value == 1024
    hip.ModuleOccupancyMaxActiveBlocksPerMultiprocessor(byref(value), function, 256, 0)
    assert value.value == 1
    assert hip.code("FuncGetAttribute", byref(value), 99, function) == hip_api.INVALID_VALUE


def test_wrong_launches_are_refused(hip):
    function = hip.function(code_object(VECTOR_ADD))
    pointer = hip.made("Malloc", 4 * N)
    arguments = [pointer] * 3
    assert hip.launch(function, 0, 64, arguments) == hip_api.INVALID_CONFIGURATION
    assert hip.launch(function, 1, 1025, arguments) == hip_api.INVALID_CONFIGURATION
    assert hip.launch(function, 2**31 - 1, 64, arguments) == hip_api.INVALID_CONFIGURATION
    assert hip.launch(12345678, 1, 64, arguments) == hip_api.INVALID_HANDLE
    assert hip.launch(function, 1, 64, arguments, stream=12345678) == hip_api.INVALID_HANDLE
    hip.Free(pointer)


def test_modules(hip, tmp_path):
    code = code_object(VECTOR_ADD)
    other = bytearray(code)
    other[48] = 0x4C  # gfx942
    assert hip.code("ModuleLoadData", byref(c_void_p()), bytes(other)) == hip_api.NO_BINARY
    assert hip.code("ModuleLoadData", byref(c_void_p()), b"no code object" * 20) == hip_api.INVALID_IMAGE
    assert hip.code("ModuleLoad", byref(c_void_p()), b"/nowhere.co") == hip_api.FILE_NOT_FOUND
    for name, content in (
        ("whole.co", code),
        ("short.co", code[:300]),
        ("tiny.co", code[:20]),
        ("empty.co", b""),
    ):
        (tmp_path / name).write_bytes(content)
    handle = c_void_p()
    hip.ModuleLoad(byref(handle), str(tmp_path / "whole.co").encode())
    for name in ("short.co", "tiny.co", "empty.co"):
        status = hip.code("ModuleLoad", byref(c_void_p()), str(tmp_path / name).encode())
        assert status == hip_api.INVALID_IMAGE
    module = handle.value
    assert hip.code("ModuleGetFunction", byref(handle), module, b"nothing") == hip_api.NOT_FOUND
    function = hip.made("ModuleGetFunction", module, b"kernel")
    hip.ModuleUnload(module)
    assert hip.code("ModuleUnload", module) == hip_api.INVALID_HANDLE
    assert hip.launch(function, 1, 64, [0, 0, 0]) == hip_api.INVALID_HANDLE


def test_an_offload_bundle(hip):
    code = code_object(VECTOR_ADD)
    ids = [b"host-x86_64-unknown-linux--", b"hipv4-amdgcn-amd-amdhsa--gfx950"]
    header = b"__CLANG_OFFLOAD_BUNDLE__" + len(ids).to_bytes(8, "little")
    for one, size in zip(ids, (0, len(code)), strict=True):
        header += b"".join(n.to_bytes(8, "little") for n in (4096, size, len(one))) + one
    assert hip.function(header.ljust(4096, b"\0") + code)
    wrong = header.replace(b"gfx950", b"gfx942").ljust(4096, b"\0") + code
    assert hip.code("ModuleLoadData", byref(c_void_p()), wrong) == hip_api.NO_BINARY


class Wrapper(ctypes.Structure):
    """What clang writes beside a bundle of a HIP program."""

    _fields_ = (("magic", c_uint), ("version", c_uint), ("bundle", ctypes.c_char_p), ("unused", c_void_p))


class Size(ctypes.Structure):
    _fields_ = (("x", c_uint), ("y", c_uint), ("z", c_uint))


@pytest.mark.parametrize(("architecture", "code"), [(b"gfx950", 0), (b"gfx942", hip_api.NO_BINARY)])
def test_kernels_compiled_into_a_program(hip, stream, architecture, code):
    """Registered as clang does it, launched by the address of a host function."""
    kernel = code_object(VECTOR_ADD)
    identity = b"hipv4-amdgcn-amd-amdhsa--" + architecture
    header = b"__CLANG_OFFLOAD_BUNDLE__" + (1).to_bytes(8, "little")
    header += b"".join(n.to_bytes(8, "little") for n in (4096, len(kernel), len(identity))) + identity
    bundle = header.ljust(4096, b"\0") + kernel
    library = hip.library
    library.__hipRegisterFatBinary.restype = c_void_p
    handle = library.__hipRegisterFatBinary(byref(Wrapper(0x48495046, 1, bundle, None)))
    host_function = c_void_p(0x1234)
    nothing = [None] * 5
    library.__hipRegisterFunction(c_void_p(handle), host_function, None, b"kernel", c_uint(0), *nothing)
    a, b = floats(1), floats(2)
    pointers = [c_void_p(hip.upload(a)), c_void_p(hip.upload(b)), c_void_p(hip.made("Malloc", a.nbytes))]
    arguments = (c_void_p * 3)(*(ctypes.addressof(one) for one in pointers))
    launch = (Size(N // 64, 1, 1), Size(64, 1, 1), arguments, c_size_t(0), c_void_p(stream))
    assert library.hipLaunchKernel(host_function, *launch) == code
    if code == 0:
        hip.StreamSynchronize(stream)
        np.testing.assert_array_equal(hip.download(pointers[2].value, a), a + b)
    else:
        assert "the bundle has none for gfx950, only: hipv4-amdgcn-amd-amdhsa--gfx942" in hip.report()
    library.__hipUnregisterFatBinary(c_void_p(handle))
    assert library.hipLaunchKernel(host_function, *launch) == hip_api.INVALID_FUNCTION


def test_a_bundle_that_is_none_is_refused(hip, stream):
    library = hip.library
    library.__hipRegisterFatBinary.restype = c_void_p
    assert library.__hipRegisterFatBinary(byref(Wrapper(7, 1, b"", None))) is None
    assert "__hipRegisterFatBinary: expected what clang writes for HIP programs" in hip.report()
    library.__hipRegisterFunction(None, c_void_p(0x4321), None, b"kernel", c_uint(0), *[None] * 5)
    launch = (Size(1, 1, 1), Size(64, 1, 1), None, c_size_t(0), c_void_p(stream))
    assert library.hipLaunchKernel(c_void_p(0x4321), *launch) == hip_api.INVALID_FUNCTION


def test_launch_configurations_are_a_stack(hip):
    library = hip.library
    for width in (1, 2):
        size = Size(width, 1, 1)
        assert library.__hipPushCallConfiguration(size, size, c_size_t(width), c_void_p(None)) == 0
    grid, block, bytes_, stream = Size(), Size(), c_size_t(), c_void_p()
    popped = (byref(grid), byref(block), byref(bytes_), byref(stream))
    for width in (2, 1):
        assert library.__hipPopCallConfiguration(*popped) == 0
        assert (grid.x, block.x, bytes_.value) == (width, width, width)
    assert library.__hipPopCallConfiguration(*popped) == hip_api.MISSING_CONFIGURATION


# ---- streams, events, order ------------------------------------------------------------------------------------------


def test_events_order_two_streams(hip):
    first, second = (hip.made("StreamCreateWithFlags", 1) for _ in range(2))
    event = hip.made("EventCreateWithFlags", 2)
    a, b = floats(1), floats(2)
    pa, pb, pc, pd = (hip.made("Malloc", a.nbytes) for _ in range(4))
    function = hip.function(code_object(VECTOR_ADD))
    for _ in range(10):
        hip.MemsetAsync(pc, 0, a.nbytes, second)
        hip.StreamSynchronize(second)
        hip.MemcpyAsync(pa, a, a.nbytes, hip_api.HOST_TO_DEVICE, first)
        hip.MemcpyAsync(pb, b, a.nbytes, hip_api.HOST_TO_DEVICE, first)
        assert hip.launch(function, N // 64, 64, [pa, pb, pc], first) == 0
        hip.EventRecord(event, first)
        hip.StreamWaitEvent(second, event, 0)
        hip.MemcpyDtoDAsync(pd, pc, a.nbytes, second)
        hip.StreamSynchronize(second)
        np.testing.assert_array_equal(hip.download(pd, a), a + b)
    assert hip.code("EventQuery", event) == 0
    assert hip.code("EventElapsedTime", byref(c_float()), event, event) == hip_api.INVALID_HANDLE
    hip.EventDestroy(event)
    assert hip.code("EventRecord", event, first) == hip_api.INVALID_HANDLE
    hip.StreamDestroy(first)
    hip.StreamDestroy(second)
    assert hip.code("StreamSynchronize", first) == hip_api.INVALID_HANDLE


def test_functions_of_the_host_run_in_order(hip, stream):
    seen = []
    function = ctypes.CFUNCTYPE(None, c_void_p)(lambda argument: seen.append(argument))
    hip.LaunchHostFunc(stream, function, c_void_p(7))
    hip.LaunchHostFunc(stream, function, c_void_p(8))
    hip.StreamSynchronize(stream)
    assert seen == [7, 8]
    assert hip.code("LaunchHostFunc", stream, c_void_p(None), c_void_p(7)) == hip_api.INVALID_VALUE


def test_a_stream_knows_its_device(hip, stream):
    ask = hip.library.hipGetStreamDeviceId
    assert [ask(c_void_p(one)) for one in (stream, None, 0x999)] == [0, 0, -1]


def test_the_null_stream_waits_for_blocking_streams_and_they_for_it(hip):
    blocking = hip.made("StreamCreate")
    a = floats()
    pa, pb, pc = (hip.made("Malloc", a.nbytes) for _ in range(3))
    function = hip.function(code_object(VECTOR_ADD))
    hip.Memcpy(pa, a, a.nbytes, hip_api.HOST_TO_DEVICE)
    assert hip.launch(function, N // 64, 64, [pa, pa, pb], blocking) == 0
    assert hip.launch(function, N // 64, 64, [pb, pa, pc], 0) == 0
    assert hip.launch(function, N // 64, 64, [pc, pa, pb], blocking) == 0
    np.testing.assert_array_equal(hip.download(pb, a), ((a + a) + a) + a)
    hip.StreamDestroy(blocking)


def test_elapsed_time(hip, stream):
    start, stop = hip.made("EventCreate"), hip.made("EventCreate")
    took = c_float(-1)
    assert hip.code("EventElapsedTime", byref(took), start, stop) == hip_api.INVALID_HANDLE
    assert hip.code("EventQuery", start) == 0
    hip.EventRecord(start, stream)
    hip.EventRecord(stop, stream)
    hip.EventSynchronize(stop)
    hip.EventElapsedTime(byref(took), start, stop)
    assert took.value >= 0


def test_work_runs_behind_the_callers_back(hip, stream):
    """The launch returns before its kernel has run: a long one is not ready yet when asked."""
    done = in_process(
        """
s = hip.made('StreamCreateWithFlags', 1)
forever = hip.function(code_object(FOREVER, 0))
assert hip.launch(forever, 1, 64, [], s) == 0
print(hip.code('StreamQuery', s), hip.code('PeekAtLastError'), flush=True)
import os; os._exit(0)
"""
    )
    assert done.stdout.split() == [str(hip_api.NOT_READY), "0"], done.stderr


def test_two_threads(hip):
    function = hip.function(code_object(VECTOR_ADD))
    failures = []

    def work(seed: int) -> None:
        try:
            stream = hip.made("StreamCreateWithFlags", 1)
            a, b = floats(seed), floats(seed + 100)
            for _ in range(10):
                pa, pb, pc = hip.upload(a, stream), hip.upload(b, stream), hip.made("Malloc", a.nbytes)
                assert hip.launch(function, N // 64, 64, [pa, pb, pc], stream) == 0
                out = np.empty_like(a)
                hip.MemcpyAsync(out, pc, a.nbytes, hip_api.DEVICE_TO_HOST, stream)
                np.testing.assert_array_equal(out, a + b)
                for pointer in (pa, pb, pc):
                    hip.Free(pointer)
            hip.StreamDestroy(stream)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_ordered_allocation(hip, stream):
    pointer = hip.made("MallocAsync", 4 * N, stream)
    hip.MemsetAsync(pointer, 1, 4 * N, stream)
    hip.FreeAsync(pointer, stream)
    hip.StreamSynchronize(stream)
    assert hip.code("Free", pointer) == hip_api.INVALID_VALUE


# ---- capture ---------------------------------------------------------------------------------------------------------


def capturing(hip, stream) -> int:
    status = c_uint(9)
    hip.StreamIsCapturing(stream, byref(status))
    return status.value


def test_a_captured_graph_runs_when_launched(hip, stream):
    a, b = floats(1), floats(2)
    pa, pb, pc = hip.upload(a), hip.upload(b), hip.made("Malloc", a.nbytes)
    function = hip.function(code_object(VECTOR_ADD))
    hip.DeviceSynchronize()
    hip.StreamBeginCapture(stream, 1)
    assert capturing(hip, stream) == 1
    hip.MemsetAsync(pc, 0, a.nbytes, stream)
    assert hip.launch(function, N // 64, 64, [pa, pb, pc], stream) == 0
    hip.MemcpyDtoDAsync(pa, pc, a.nbytes, stream)
    graph = hip.end_capture(stream)
    assert capturing(hip, stream) == 0
    np.testing.assert_array_equal(hip.download(pa, a), a)
    executable = hip.made("GraphInstantiate", graph, 0, 0, 0)
    hip.GraphDestroy(graph)
    hip.GraphLaunch(executable, stream)
    hip.GraphLaunch(executable, stream)
    hip.StreamSynchronize(stream)
    np.testing.assert_array_equal(hip.download(pa, a), (a + b) + b)
    hip.GraphExecDestroy(executable)
    assert hip.code("GraphLaunch", executable, stream) == hip_api.INVALID_HANDLE


def test_captures_have_numbers_and_say_what_ended_them(hip, stream):
    numbers = []
    for _ in range(2):
        hip.StreamBeginCapture(stream, 0)
        status, number = c_uint(9), ctypes.c_ulonglong(0)
        hip.StreamGetCaptureInfo(stream, byref(status), byref(number))
        assert status.value == 1
        numbers.append(number.value)
        hip.code("Malloc", byref(c_void_p()), c_size_t(64))
        assert hip.code("StreamEndCapture", stream, byref(c_void_p())) != 0
        assert "an earlier call has invalidated the capture: hipMalloc" in hip.report()
    assert numbers[1] == numbers[0] + 1 > 1
    number = ctypes.c_ulonglong(5)
    hip.StreamGetCaptureInfo(stream, byref(status), byref(number))
    assert (status.value, number.value) == (0, 5)


def test_capture_forks_and_joins_through_events(hip, stream):
    other = hip.made("StreamCreateWithFlags", 1)
    fork, join = hip.made("EventCreate"), hip.made("EventCreate")
    pointer = hip.made("Malloc", 8)
    hip.StreamBeginCapture(stream, 2)
    hip.MemsetAsync(pointer, 1, 8, stream)
    hip.EventRecord(fork, stream)
    hip.StreamWaitEvent(other, fork, 0)
    assert capturing(hip, other) == 1
    hip.MemsetAsync(pointer, 2, 4, other)
    hip.EventRecord(join, other)
    hip.StreamWaitEvent(stream, join, 0)
    executable = hip.made("GraphInstantiateWithFlags", hip.end_capture(stream), 0)
    hip.GraphLaunch(executable, stream)
    hip.StreamSynchronize(stream)
    np.testing.assert_array_equal(hip.download(pointer, np.zeros(8, np.uint8)), [2, 2, 2, 2, 1, 1, 1, 1])
    assert hip.code("EventQuery", join) == 907

    hip.StreamBeginCapture(stream, 2)
    hip.EventRecord(fork, stream)
    hip.StreamWaitEvent(other, fork, 0)
    hip.MemsetAsync(pointer, 2, 4, other)
    assert hip.code("StreamEndCapture", stream, byref(c_void_p())) == 904
    assert capturing(hip, stream) == capturing(hip, other) == 0
    hip.StreamDestroy(other)


def test_what_a_capture_forbids(hip, stream):
    hip.StreamBeginCapture(stream, 0)
    assert hip.code("Malloc", byref(c_void_p()), 64) == 900
    assert capturing(hip, stream) == 2
    assert hip.code("StreamEndCapture", stream, byref(c_void_p())) == 901
    hip.StreamBeginCapture(stream, 2)
    assert hip.code("StreamSynchronize", stream) == 900
    assert hip.code("StreamEndCapture", stream, byref(c_void_p())) == 901
    assert hip.code("StreamBeginCapture", 0, 0) == 900
    assert hip.code("StreamEndCapture", stream, byref(c_void_p())) == hip_api.ILLEGAL_STATE

    blocking = hip.made("StreamCreate")
    pointer = hip.made("Malloc", 64)
    hip.StreamBeginCapture(blocking, 2)
    assert hip.code("MemsetAsync", pointer, 0, 64, 0) == 906
    assert hip.code("StreamEndCapture", blocking, byref(c_void_p())) == 901
    hip.StreamDestroy(blocking)


# ---- failure ---------------------------------------------------------------------------------------------------------


def test_a_wrong_kernel_fails_its_stream_for_good(hip, capfd):
    stream = hip.made("StreamCreateWithFlags", 1)
    a = floats()
    pa, pc = hip.upload(a), hip.made("Malloc", a.nbytes)
    hip.DeviceSynchronize()
    assert hip.launch(hip.function(code_object(TOO_EARLY)), N // 64, 64, [pa, pa, pc], stream) == 0
    assert hip.code("StreamSynchronize", stream) == hip_api.LAUNCH_FAILURE
    assert hip.code("StreamQuery", stream) == hip_api.LAUNCH_FAILURE
    assert hip.code("MemsetAsync", pc, 0, 4, stream) == hip_api.LAUNCH_FAILURE
    assert hip.code("GetLastError") == hip_api.LAUNCH_FAILURE
    assert hip.code("GetLastError") == 0
    assert hip.code("DeviceSynchronize") == hip_api.LAUNCH_FAILURE
    written = capfd.readouterr().err
    assert written.count("G17") >= 1
    assert written.count("emulated gfx950: kernel 'kernel' is wrong") == 1
    hip.StreamDestroy(stream)
    hip.DeviceSynchronize()


def test_a_kernel_that_leaves_its_buffers_fails_with_the_place(hip, capfd):
    stream = hip.made("StreamCreateWithFlags", 1)
    a = floats()
    pa = hip.upload(a)
    hip.DeviceSynchronize()
    assert hip.launch(hip.function(code_object(VECTOR_ADD)), N // 64 + 1, 64, [pa, pa, pa], stream) == 0
    assert hip.code("StreamSynchronize", stream) == hip_api.LAUNCH_FAILURE
    assert "past the end of 'hipMalloc" in hip.report()
    assert "past the end of 'hipMalloc" in capfd.readouterr().err
    hip.StreamDestroy(stream)
    hip.Free(pa)


def test_failure_spreads_along_order_and_no_further(hip):
    first, second, third = (hip.made("StreamCreateWithFlags", 1) for _ in range(3))
    event = hip.made("EventCreate")
    pointer = hip.made("Malloc", 64)
    slow, wrong = hip.function(code_object(SLOW, 0)), hip.function(code_object(TOO_EARLY))
    assert hip.launch(slow, 1, 64, [], first) == 0
    assert hip.launch(wrong, 1, 64, [0, 0, 0], first) == 0
    hip.EventRecord(event, first)
    hip.StreamWaitEvent(second, event, 0)
    assert hip.code("StreamSynchronize", second) == hip_api.LAUNCH_FAILURE
    assert hip.code("EventQuery", event) == hip_api.LAUNCH_FAILURE
    hip.MemsetAsync(pointer, 0, 64, third)
    hip.StreamSynchronize(third)
    for stream in (first, second, third):
        hip.StreamDestroy(stream)


def test_errors_have_names(hip):
    assert hip.library.hipGetErrorName(c_int(719)) == b"hipErrorLaunchFailure"
    assert hip.library.hipGetErrorString(c_int(719)) == b"a kernel has failed"
    assert hip.library.hipGetErrorName(c_int(4711)) == b"unrecognized error code"


@pytest.mark.parametrize(
    ("fault", "call", "codes"),
    [
        ("malloc:3", "hip.code('Malloc', byref(c_void_p()), 64)", [0, 0, hip_api.OUT_OF_MEMORY, 0]),
        ("malloc:2+", "hip.code('Malloc', byref(c_void_p()), 64)", [0, 2, 2, 2]),
        ("malloc:2-3", "hip.code('Malloc', byref(c_void_p()), 64)", [0, 2, 2, 0]),
        ("malloc:3-2", "hip.code('Init', 0)", [hip_api.INVALID_VALUE]),
        ("device", "hip.code('GetDeviceCount', byref(c_int()))", [hip_api.NO_DEVICE, 0]),
        ("lost:3", "hip.code('SetDevice', 0)", [0, 0, hip_api.LAUNCH_FAILURE, hip_api.LAUNCH_FAILURE]),
        ("stream:2", "hip.code('StreamCreate', byref(c_void_p()))", [0, hip_api.OUT_OF_MEMORY, 0]),
        ("load,device:9", "hip.code('ModuleLoadData', byref(c_void_p()), b'')", [hip_api.NO_BINARY, 200]),
        ("no:such", "hip.code('Init', 0)", [hip_api.INVALID_VALUE] * 2),
        ("malloc:0", "hip.code('Init', 0)", [hip_api.INVALID_VALUE]),
    ],
)
def test_planted_faults(fault, call, codes):
    done = in_process(f"print(*[{call} for _ in range({len(codes)})])", ZYFA_EMULATED_FAULT=fault)
    assert done.returncode == 0, done.stderr
    assert list(map(int, done.stdout.split())) == codes


def test_planted_faults_of_launches():
    done = in_process(
        """
s = hip.made('StreamCreateWithFlags', 1)
p = hip.made('Malloc', 1024)
hip.Memset(p, 0, 1024)
f = hip.function(code_object(VECTOR_ADD))
print(*[hip.launch(f, 1, 64, [p, p, p], s) for _ in range(3)], hip.code('StreamSynchronize', s))
""",
        ZYFA_EMULATED_FAULT="launch:2,run:2",
    )
    assert done.returncode == 0, done.stderr
    assert list(map(int, done.stdout.split())) == [0, hip_api.OUT_OF_RESOURCES, 0, hip_api.LAUNCH_FAILURE]
    assert "failed on purpose" in done.stderr


def test_a_mistaken_fault_is_said():
    done = in_process("hip.code('Init', 0)", ZYFA_EMULATED_FAULT="mallocs:1")
    assert "ZYFA_EMULATED_FAULT: 'mallocs:1' is no fault; expected NAME" in done.stderr


def test_failures_raise_in_the_helper(hip):
    with pytest.raises(HipError, match="hipSetDevice returned 101"):
        hip.SetDevice(5)
