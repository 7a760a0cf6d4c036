"""Programs of MIGraphX's gpu target on the emulated MI355X: its kernels and ours on one stream, in device memory.

Device memory faults when the host touches it, so that a run that ends well has not. What is real and what stands in is in
`rig.py`.
"""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from zyfa_ort.kernels.emulator import hip_library_path

from migraphx_programs.models import Graph, by_onnxruntime, decoder_inputs, write_decoder
from migraphx_programs.remote import Refused, Remote
from zyfa_ort.migraphx import DeviceArray
from zyfa_ort.numerics import TOLERANCES

pytestmark = pytest.mark.migraphx

# MIGraphX asks HIP whether its own host memory is device memory.
ASKED = ("", "hipPointerGetAttributes: the pointer is none of an allocation")


def expect_close(got: dict[str, Any], wanted: dict[str, Any], entry: str) -> None:
    assert list(got) == list(wanted)
    for name in wanted:
        assert not TOLERANCES[entry].violations(
            got[name].astype(np.float32), wanted[name].astype(np.float32)
        ), name


def expect_quiet(gpu) -> None:
    """No hazard, no warning, no refused call."""
    assert gpu.ask("emulated_report") in ASKED
    assert "emulated gfx950" not in gpu.errors()


def write_pointwise(path, layers: int = 2):
    """Nothing but what MIGraphX compiles itself, and attention."""
    g = Graph()
    x = g.input("x", TensorProto.FLOAT, ["batch", "rows", 2, 128])
    half = g.constant("half", np.array(0.5, np.float32))
    for layer in range(layers):
        q = g.node("Mul", [x, half], f"q{layer}")
        k = g.node("Add", [x, half], f"k{layer}")
        v = g.node("Sigmoid", [x], f"v{layer}")
        attended = g.node("ZyfaPrefillAttention", [q, k, v], f"a{layer}", precision="bf16")
        x = g.node("Add", [x, attended], f"x{layer}")
    g.node("Transpose", [x], "y", perm=[0, 2, 1, 3])
    return g.save(path, {"y": TensorProto.FLOAT, "x0": TensorProto.FLOAT})


@pytest.fixture(scope="module")
def pointwise(gpu, tmp_path_factory):
    path = write_pointwise(tmp_path_factory.mktemp("gpu") / "m.onnx")
    inputs = {"x": np.random.default_rng(0).standard_normal((1, 70, 2, 128)).astype(np.float32)}
    return path, gpu.compile(path, dims={"batch": 1, "rows": 70}), inputs


def test_kernels_of_both_on_one_stream(gpu, pointwise):
    path, program, inputs = pointwise
    assert program.kinds == ["SegmentStep", "NodeStep"] * 2 + ["SegmentStep"]
    assert program.facts["gpu"].emulated and program.facts["gpu"].architecture.startswith("gfx950")
    expect_close(program.run(inputs), by_onnxruntime(path, inputs), "bf16_layers")
    expect_quiet(gpu)


def test_the_same_bits_in_every_run(gpu, pointwise):
    """Runs behind each other on a stream of the caller's reuse memory before the first one's results are read."""
    _, program, inputs = pointwise
    first = program.run(inputs)
    for outputs in (program.run(inputs), *program.launch(inputs, runs=3)):
        assert all(outputs[name].tobytes() == first[name].tobytes() for name in first)
    expect_quiet(gpu)


def test_saved_programs_run_on_the_gpu(gpu, pointwise, tmp_path):
    _, program, inputs = pointwise
    program.save(tmp_path / "m.mgx")
    loaded = gpu.load(tmp_path / "m.mgx")
    assert loaded.facts == program.facts
    first, second = program.run(inputs), loaded.run(inputs)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_decoder_with_matrix_products_mask_and_cache(gpu, tmp_path):
    path = write_decoder(tmp_path / "m.onnx", precision="bf16", head_dim=128, layers=1)
    inputs = decoder_inputs(2, 17, 20, head_dim=128, layers=1)
    program = gpu.compile(path, dims={"batch": 2, "tokens": 17, "past": 20})
    expect_close(program.run(inputs), by_onnxruntime(path, inputs), "bf16_layers")
    expect_quiet(gpu)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
@pytest.mark.parametrize(("tokens", "past"), [(130, 0), (1, 129)])
def test_decoders(gpu, tmp_path, precision, tokens, past):
    path = write_decoder(tmp_path / "m.onnx", precision=precision, head_dim=128)
    inputs = decoder_inputs(2, tokens, past, head_dim=128)
    if not past:
        inputs |= {
            f"past_{one}_{layer}": np.zeros((2, 2, 0, 128), np.float32) for one in "kv" for layer in range(2)
        }
    program = gpu.compile(path, dims={"batch": 2, "tokens": tokens, "past": past})
    entry = "bf16_layers" if precision == "bf16" else "fp8_model"
    expect_close(program.run(inputs), by_onnxruntime(path, inputs), entry)
    expect_quiet(gpu)


@pytest.mark.slow
def test_present_of_one_program_is_past_of_the_next(gpu, tmp_path):
    """Prefill of 19 tokens and decoding of one, with the cache in device memory, are a prefill of 20."""
    path = write_decoder(tmp_path / "m.onnx", precision="bf16", head_dim=128, layers=1)
    whole = decoder_inputs(1, 20, 0)
    ids, mask = whole["input_ids"], whole["attention_mask"]
    empty = {f"past_{one}_0": np.zeros((1, 2, 0, 128), np.float32) for one in "kv"}
    prefill = gpu.compile(path, dims={"batch": 1, "tokens": 19, "past": 0})
    decode = gpu.compile(path, dims={"batch": 1, "tokens": 1, "past": 19})
    given = [
        {"input_ids": ids[:, :19], "attention_mask": mask[:, :19]} | empty,
        {"input_ids": ids[:, 19:], "attention_mask": mask},
    ]
    got = prefill.chain(decode, given, {f"present_{one}_0": f"past_{one}_0" for one in "kv"})
    wanted = by_onnxruntime(path, whole | empty)
    wanted["logits"] = wanted["logits"][:, -1:]
    expect_close(got, wanted, "bf16_layers")
    expect_quiet(gpu)


@pytest.mark.slow
def test_codes_stay_on_our_side(gpu, tmp_path):
    path = write_decoder(tmp_path / "m.onnx", head_dim=128, layers=1, quantize_nodes=True, cache=False)
    inputs = decoder_inputs(2, 33, 0)
    program = gpu.compile(path, dims={"batch": 2, "tokens": 33})
    assert program.kinds.count("NodeStep") == 6
    expect_close(program.run(inputs), by_onnxruntime(path, inputs), "fp8_model")
    expect_quiet(gpu)


def test_precision_fp32_has_no_kernel_unless_another_is_asked_for(gpu, tmp_path):
    g = Graph()
    x = g.input("x", TensorProto.FLOAT, [1, 20, 2, 128])
    g.node("ZyfaPrefillAttention", [x, x, x], "y")
    path = g.save(tmp_path / "m.onnx", {"y": TensorProto.FLOAT})
    with pytest.raises(
        Refused, match=r"^MigraphxError: ZyfaPrefillAttention 'ZyfaPrefillAttention_y': precision: expected"
    ):
        gpu.compile(path)
    inputs = {"x": np.random.default_rng(0).standard_normal((1, 20, 2, 128)).astype(np.float32)}
    got = gpu.compile(path, precision="bf16").run(inputs)["y"]
    assert not TOLERANCES["bf16"].violations(got, by_onnxruntime(path, inputs)["y"])


def test_a_mask_with_holes_ends_the_run(gpu, tmp_path):
    """As in the provider: no number, and an error."""
    g = Graph()
    x = g.input("x", TensorProto.FLOAT, [1, 40, 2, 128])
    mask = g.input("mask", TensorProto.BOOL, [1, 40])
    g.node("ZyfaPrefillAttention", [x, x, x, "", "", mask], "y", precision="fp8")
    program = gpu.compile(g.save(tmp_path / "m.onnx", {"y": TensorProto.FLOAT}))
    inputs = {"x": np.ones((1, 40, 2, 128), np.float32), "mask": np.ones((1, 40), bool)}
    assert np.allclose(program.run(inputs)["y"], 1, atol=0.05)
    inputs["mask"][0, 10:20] = False
    with pytest.raises(Refused, match=r"key_mask: expected one run of visible keys"):
        program.run(inputs)
    inputs["mask"][:] = True
    assert np.allclose(program.run(inputs)["y"], 1, atol=0.05)


# Fault of the emulated device -> what a run says; the runs after it are well again where the fault was no work on a stream.
FAULTS = {
    "launch:1": r"^MigraphxError: migraphx_program_run_async \(segment 0\): status 4; the reason is on standard error$",
    "launch:2": r"^MigraphxError: ZyfaPrefillAttention '\w+': hipModuleLaunchKernel of \w+: not enough resources",
    "copy:1": r"^MigraphxError: hipMemcpyAsync of \d+ bytes: an argument has a value that is not allowed",
    # Whoever asks first after the kernel has failed.
    "run:2": r"^MigraphxError: .*(a kernel has failed \(hipErrorLaunchFailure\)|the reason is on standard error)",
}


@pytest.fixture(scope="module")
def saved(pointwise, tmp_path_factory):
    """Loading compiles nothing."""
    path = tmp_path_factory.mktemp("saved") / "m.mgx"
    pointwise[1].save(path)
    return path


@pytest.mark.parametrize(
    "fault",
    ["launch:2", "run:2", *(pytest.param(one, marks=pytest.mark.slow) for one in ("launch:1", "copy:1"))],
)
def test_calls_of_hip_that_fail(saved, pointwise, fault):
    """An error, and no dead process."""
    inputs = pointwise[2]
    remote = Remote("gpu", ZYFA_EMULATED_FAULT=fault)
    program = remote.load(saved)
    with pytest.raises(Refused, match=FAULTS[fault]):
        program.run(inputs)
    if fault.startswith("run"):
        with pytest.raises(Refused, match=FAULTS[fault]):
            program.run(inputs)
    else:
        again = program.run(inputs)
        assert all(again[name].tobytes() == one.tobytes() for name, one in pointwise[1].run(inputs).items())
    assert remote.close() == 0


def test_two_hip_libraries_in_one_process(gpu, tmp_path):
    other = tmp_path / "libamdhip64.so.7"
    shutil.copy(hip_library_path(), other)
    remote = Remote("gpu", ZYFA_HIP_LIBRARY=str(other))
    with pytest.raises(
        Refused, match=r"^MigraphxError: HIP: expected one library for MIGraphX and zyfa_ort, got /\S*, /"
    ):
        remote.compile(write_pointwise(tmp_path / "m.onnx", layers=1), dims={"batch": 1, "rows": 3})
    assert remote.close() == 0


def test_no_gpu(gpu, tmp_path):
    remote = Remote("gpu", ZYFA_EMULATED_FAULT="device:1+")
    with pytest.raises(Refused, match=r"^MigraphxError: \S"):
        remote.compile(write_pointwise(tmp_path / "m.onnx", layers=1), dims={"batch": 1, "rows": 3})
    assert remote.close() == 0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (np.zeros((1, 70, 2, 128), np.float32), "expected a DeviceArray or an object with __cuda_array_interface__, got"),
        (DeviceArray(16, (1, 70, 2, 64), np.dtype(np.float32)), "expected float32 1x70x2x128, got float32 1x70x2x64"),
        (DeviceArray(16, (1, 70, 2, 128), np.dtype(np.float16)), "expected float32 1x70x2x128, got float16 1x70x2x128"),
    ],
)  # fmt: skip
def test_launching_on_what_is_no_device_memory(gpu, pointwise, given, text):
    _, program, _ = pointwise
    with pytest.raises(Refused) as refused:
        program.launch_with({"x": given})
    assert str(refused.value).startswith(f"InputError: input x: {text}")
