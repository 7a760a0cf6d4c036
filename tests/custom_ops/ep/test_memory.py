"""Device tensors of the caller, and memory that does not grow."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from custom_ops.gpu_session import free_memory, gpu_session, in_process
from custom_ops.op_session import ATTENTION, one_node_model, run_session
from kernels.select.cases import tensors

AMD = 0x1002


def on_device(array: Any) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "gpu", 0, vendor_id=AMD)


def test_tensors_that_stay_on_the_device() -> None:
    """A cache that goes round: present of one run is past of the next, bound as it is."""
    inputs = tensors(20, 20, (64, 64), np.float32, past=0)
    step = tensors(1, 21, (64, 64), np.float32, past=20)
    outputs = {"output": np.float32, "present_key": np.float32, "present_value": np.float32}
    attributes = {"precision": "bf16"}
    session = gpu_session(one_node_model(ATTENTION, step, outputs, attributes))
    whole = run_session(
        session, inputs | {f"past_{n}": np.zeros((1, 1, 0, 64), np.float32) for n in ("key", "value")}
    )
    cache = {f"past_{n}": on_device(whole[f"present_{n}"]) for n in ("key", "value")}
    for _ in range(3):
        binding = session.io_binding()
        for name in ("query", "key", "value"):
            binding.bind_cpu_input(name, step[name])
        for name, value in cache.items():
            binding.bind_ortvalue_input(name, value)
        keys = cache["past_key"].shape()[2] + 1
        made = {
            name: ort.OrtValue.ortvalue_from_shape_and_type(
                [1, 1, keys, 64], np.float32, "gpu", 0, vendor_id=AMD
            )
            for name in ("present_key", "present_value")
        }
        for name, value in made.items():
            binding.bind_ortvalue_output(name, value)
        binding.bind_output("output", "cpu")
        session.run_with_iobinding(binding)
        cache = {f"past_{name[8:]}": value for name, value in made.items()}
    assert cache["past_key"].device_name() == "hip"
    added = np.concatenate([whole["present_key"], *[step["key"].swapaxes(1, 2)] * 3], axis=2)
    assert cache["past_key"].numpy().tobytes() == added.tobytes()


@pytest.mark.parametrize("holes", [False, True])
def test_runs_that_do_not_wait(holes: bool) -> None:
    """The output is waited for when it is read; nobody is there to be told of holes, but the output is NaN."""
    inputs = tensors(40, 70, (128, 128), np.float32) | {"key_mask": np.ones((1, 70), np.int64)}
    inputs["key_mask"][0, 30] = 0 if holes else 1
    session = gpu_session(one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": "fp8"}))
    options = ort.RunOptions()
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, on_device(array))
    output = ort.OrtValue.ortvalue_from_shape_and_type([1, 40, 2, 128], np.float32, "gpu", 0, vendor_id=AMD)
    binding.bind_ortvalue_output("output", output)
    for _ in range(3):
        session.run_with_iobinding(binding, options)
    assert np.isnan(output.numpy()).all() == holes
    if not holes:
        wanted = run_session(session, inputs)["output"]
        assert output.numpy().tobytes() == wanted.tobytes()


def test_runs_need_no_more_memory_than_the_first() -> None:
    inputs = tensors(40, 90, (128, 128), np.float32, batch=2, past=50)
    outputs = {"output": np.float32, "present_key": np.float32, "present_value": np.float32}
    session = gpu_session(one_node_model(ATTENTION, inputs, outputs, {"precision": "fp8"}))
    run_session(session, inputs)
    before = free_memory()
    for _ in range(20):
        run_session(session, inputs)
    assert free_memory() == before


def test_memory_goes_back_with_the_session() -> None:
    inputs = tensors(40, 90, (64, 64), batch=2)

    def one() -> None:
        session = gpu_session(one_node_model(ATTENTION, inputs, {"output": inputs["query"].dtype}, {}))
        run_session(session, inputs)

    one()
    gc.collect()
    before = free_memory()
    for _ in range(3):
        one()
        gc.collect()
    assert free_memory() == before


def test_the_registration_is_taken_back_and_made_again() -> None:
    done = in_process(
        """
import gc
inputs = tensors(40, 40, (64, 64))
model = one_node_model(ATTENTION, inputs, {"output": inputs["query"].dtype}, {})
answers = set()
for _ in range(3):
    session = gpu_session(model)
    answers.add(run_session(session, inputs)["output"].tobytes())
    del session
    gc.collect()
    ort.unregister_execution_provider_library(gpu.PROVIDER)
    assert not [d for d in ort.get_ep_devices() if d.ep_name == gpu.PROVIDER]
print(len(answers))
"""
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "1", "")


def test_a_session_that_is_never_closed_ends_quietly() -> None:
    done = in_process(
        """
inputs = tensors(40, 40, (64, 64))
session = gpu_session(one_node_model(ATTENTION, inputs, {"output": inputs["query"].dtype}, {}))
print(run_session(session, inputs)["output"].shape)
"""
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "(1, 40, 2, 64)", "")
