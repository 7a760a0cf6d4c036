"""Faults planted in the emulated device: an error with its cause, no hang, and what can go on goes on."""

from __future__ import annotations

import pytest
from custom_ops.gpu_session import in_process

# Makes a session, runs it three times, closes it; says what happened to each.
PROGRAM = """
import gc

def attempt(what, step):
    try:
        result = step()
        print(what, "done", flush=True)
        return result
    except Exception as error:
        print(what, " ".join(str(error).split()), flush=True)

inputs = tensors(40, 70, (128, 128), np.float32)
model = one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": "fp8"})
before = free_memory()
session = attempt("create", lambda: gpu_session(model))
for number in range(3):
    if session is not None:
        attempt(f"run{number}", lambda: run_session(session, inputs))
del session
gc.collect()
try:
    left = before - free_memory()
    print("closed", "done" if left == 0 else f"with {left} bytes of the device in use")
except AssertionError:
    print("closed and lost")
"""


def events(fault: str) -> dict[str, str]:
    """What came of each step; "stderr" is what was written there."""
    done = in_process(PROGRAM, ZYFA_EMULATED_FAULT=fault)
    assert done.returncode == 0, done.stderr[-2000:]
    return {"stderr": done.stderr, **dict(line.split(" ", 1) for line in done.stdout.splitlines())}


STEPS = ("create", "run0", "run1", "run2", "closed")


def all_done(found: dict[str, str]) -> bool:
    return [found.get(step) for step in STEPS] == ["done"] * len(STEPS)


def assert_is_failure(text: str) -> None:
    """Not the caller's fault, and not the code at which the Python package goes to the CPU for good."""
    assert text.startswith("[ONNXRuntimeError] : 1 : FAIL : "), text


def test_without_a_fault() -> None:
    found = events("")
    assert all_done(found)
    assert found["stderr"] == ""


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("load", "of quantize.co on gfx950:sramecc+:xnack-: no code in it for this device (hipErrorNoBinaryForGpu)"),
        ("load:2", "hipModuleLoadData of fp8_prefill_d128_hilo_f32.co on gfx950"),
        ("function", "hipModuleGetFunction of quantize_amax_f32: no such kernel or variable (hipErrorNotFound)"),
        ("launch", "hipModuleLaunchKernel of quantize_amax_f32: not enough resources for the launch"),
        ("launch:7", "hipModuleLaunchKernel of fp8_prefill_d128_hilo_f32: not enough resources for the launch"),
        ("copy", "hipMemcpy"),
        ("stream", "hipStreamCreateWithFlags: out of memory (hipErrorOutOfMemory)"),
        ("host", "hipHostMalloc of 4096 bytes: out of memory (hipErrorOutOfMemory)"),
    ],
)  # fmt: skip
def test_the_next_run_works(fault: str, message: str) -> None:
    """Whatever failed once is tried again."""
    found = events(fault)
    assert found["create"] == "done"
    assert message in found["run0"]
    assert_is_failure(found["run0"])
    assert (found["run1"], found["run2"], found["closed"]) == ("done", "done", "done")


@pytest.mark.parametrize("fault", ["run", "run:7"])
def test_a_kernel_that_fails_takes_the_device_with_it(fault: str) -> None:
    """A stream that failed stays failed, as on the chip: every later run says so, and nothing hangs."""
    found = events(fault)
    for step in ("run0", "run1", "run2"):
        assert_is_failure(found[step])
        assert "a kernel has failed (hipErrorLaunchFailure)" in found[step]
    assert found["closed"] == "done"


@pytest.mark.parametrize(
    "call", [20, 40, 60, 80, *(pytest.param(n, marks=pytest.mark.slow) for n in range(10, 86) if n % 20)]
)
def test_a_device_that_is_lost(call: int) -> None:
    """ONNX Runtime says no more of a failed allocation than that it failed; its reason is on standard error."""
    found = events(f"lost:{call}")
    failed = [found[step] for step in STEPS[:-1] if found.get(step, "done") != "done"]
    assert failed
    assert all("hipErrorLaunchFailure" in text or "Allocation failed" in text for text in failed)
    assert "hipErrorLaunchFailure" in "".join(failed) + found["stderr"]
    for text in failed:
        assert_is_failure(text)
    assert found["closed"] == "and lost"


def test_memory_that_runs_out_for_good() -> None:
    found = events("malloc:1+")
    assert found["create"] == "done"
    for step in ("run0", "run1", "run2"):
        assert "Allocation failed" in found[step]
        assert_is_failure(found[step])
    assert "ZyfaExecutionProvider: hipMalloc of " in found["stderr"]
    assert " free: out of memory (hipErrorOutOfMemory)" in found["stderr"]
    assert found["closed"] == "done"


def test_an_output_that_does_not_fit_is_an_error_of_the_node() -> None:
    """ONNX Runtime hands the kernel a tensor without memory; nothing is launched that would write there."""
    found = events("malloc:4-5")
    wanted = (
        "ZyfaPrefillAttention 'node': output 0: expected memory, got none: hipMalloc of 40960 bytes with "
    )
    assert wanted in found["run0"]
    assert_is_failure(found["run0"])
    assert (found["run1"], found["run2"], found["closed"]) == ("done", "done", "done")


def test_run_of_the_package_says_why_there_was_no_memory(tmp_path) -> None:
    """Where ONNX Runtime says "Allocation failed." and no more."""
    done = in_process(
        """
inputs = tensors(40, 70, (128, 128), np.float32)
session = gpu_session(one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": "fp8"}))
for _ in range(2):
    try:
        print(zyfa_ort.run(session, inputs)["output"].shape)
    except zyfa_ort.errors.DeviceError as error:
        print(error)
""",
        ZYFA_EMULATED_FAULT="malloc:2-3",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = done.stdout.splitlines()
    assert first.startswith("ZyfaExecutionProvider: hipMalloc of 36864 bytes with ")
    assert "free: out of memory (hipErrorOutOfMemory)" in first
    assert second == "(1, 40, 2, 128)"


def test_nothing_was_refused_before_a_gpu_was_asked() -> None:
    done = in_process("print(repr(gpu.last_refusal()))")
    assert (done.stdout, done.stderr) == ("''\n", "")


def test_a_failure_is_not_tried_again_on_the_cpu() -> None:
    """onnxruntime's Python session does that at ORT_EP_FAIL (1.32), and the session never comes back."""
    done = in_process(
        """
inputs = tensors(40, 70, (128, 128), np.float32)
session = gpu_session(one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": "fp8"}))
for _ in range(2):
    try:
        run_session(session, inputs)
    except Exception:
        pass
    print(session.get_providers())
""",
        ZYFA_EMULATED_FAULT="launch",
    )
    assert done.stdout.splitlines() == ["['ZyfaExecutionProvider', 'CPUExecutionProvider']"] * 2, done.stderr


@pytest.mark.parametrize("fault", ["launch:9", "malloc:12-13", "copy:20", "stream:3"])
def test_a_failure_in_one_of_eight_threads_is_nobody_elses(fault: str) -> None:
    """Two sessions: every run has the right bits or its own error, and in the end all is well."""
    done = in_process(
        """
import gc
from concurrent.futures import ThreadPoolExecutor

problems = [tensors(rows, 70, (128, 128), np.float32) for rows in (3, 40)]
models = [one_node_model(ATTENTION, problems[1], {"output": np.float32}, {"precision": p}) for p in ("bf16", "fp8")]
before = free_memory()
sessions = [gpu_session(model) for model in models]

def work(seed):
    seen = []
    for turn in range(4):
        s, p = (seed + turn) % 2, (seed // 2 + turn) % 2
        try:
            seen.append((s, p, run_session(sessions[s], problems[p])["output"].tobytes()))
        except Exception as error:
            seen.append((s, p, " ".join(str(error).split())))
    return seen

with ThreadPoolExecutor(8) as pool:
    seen = [one for thread in pool.map(work, range(8)) for one in thread]
right = {(s, p): run_session(sessions[s], problems[p])["output"].tobytes() for s in (0, 1) for p in (0, 1)}
errors = [got for s, p, got in seen if got != right[s, p]]
del sessions
gc.collect()
print(len(errors), free_memory() == before, *errors)
""",
        ZYFA_EMULATED_FAULT=fault,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    count, clean, text = done.stdout.split(" ", 2)
    assert (count, clean) == ("1", "True"), done.stdout
    assert "failed on purpose" in text or "Allocation failed" in text


def test_a_workspace_that_does_not_fit_is_an_error_of_the_node() -> None:
    """Three inputs and the output have their memory by then."""
    assert "ZyfaPrefillAttention 'node': hipMalloc of " in events("malloc:5+")["run0"]


@pytest.mark.parametrize("number", [1, 4, 5])
def test_memory_that_runs_out_once_is_found_by_giving_back_what_is_unused(number: int) -> None:
    assert all_done(events(f"malloc:{number}"))


def test_no_device() -> None:
    done = in_process("gpu.devices()", ZYFA_EMULATED_FAULT="device:1+")
    assert "DeviceError: ZyfaExecutionProvider: HIP sees no GPU; run 'zyfa-ort doctor'" in done.stderr


def test_code_objects_that_are_missing(tmp_path) -> None:
    done = in_process(PROGRAM, ZYFA_CODE_OBJECTS=f"{tmp_path}:{tmp_path / 'other'}")
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    wanted = f"code object 'quantize': expected quantize.co in one of {tmp_path}, {tmp_path / 'other'}; reinstall with"
    assert wanted in found["run0"]
    assert wanted in found["run2"]


def test_code_objects_that_are_none(tmp_path) -> None:
    (tmp_path / "quantize.co").write_bytes(b"no machine code, but long enough to be looked at" * 4)
    done = in_process(PROGRAM, ZYFA_CODE_OBJECTS=str(tmp_path))
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert (
        "hipModuleLoadData of quantize.co on gfx950:sramecc+:xnack-: not a code object that can be loaded"
        in found["run0"]
    )
