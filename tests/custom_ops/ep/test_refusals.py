"""What the provider does not do, and says: nodes without a kernel, options, devices, runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from custom_ops.gpu_session import gpu_session, in_process, placement
from custom_ops.op_session import (
    ATTENTION,
    Array,
    attention_outputs,
    one_node_model,
    run_attention,
    run_session,
)
from kernels.select.cases import tensors
from ml_dtypes import float8_e4m3fn
from onnx import TensorProto
from reference.toy_model import write_toy
from zyfa_ort.kernels.emulator import hip_library_path

import zyfa_ort
from zyfa_ort.errors import DeviceError

CPU = "or run this node on the CPU"
# Attributes of a (40, 70, 128/128) problem in float, and why no kernel takes it.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, f"precision: expected bf16 or fp8, got fp32; no GPU kernel computes in fp32: set precision, {CPU}"),
    ({"precision": "fp8", "fp8_edges": "bf16"}, "fp8_edges: expected hilo or none, got bf16; "),
    ({"precision": "fp8", "softcap": 3.0}, "softcap: expected 0 unless precision is bf16, got 3; "),
]


def model_for(inputs: dict[str, Array], static_shapes: bool = False, **attributes: Any) -> Any:
    return one_node_model(
        ATTENTION, inputs, attention_outputs(inputs, attributes, ("output",)), attributes, static_shapes
    )


@pytest.mark.parametrize(("attributes", "reason"), REFUSED)
def test_a_node_without_a_kernel_ends_the_session_at_its_creation(
    attributes: dict[str, Any], reason: str
) -> None:
    inputs = tensors(40, 70, (128, 128), np.float32)
    with pytest.raises(Exception, match="ZyfaPrefillAttention 'node': ") as refusal:
        gpu_session(model_for(inputs, **attributes))
    assert reason in str(refusal.value)


@pytest.mark.parametrize(("attributes", "reason"), REFUSED)
def test_with_fallback_it_runs_on_the_cpu(attributes: dict[str, Any], reason: str) -> None:
    inputs = tensors(40, 70, (128, 128), np.float32)
    session = gpu_session(model_for(inputs, **attributes), {"allow_fallback": "1"})
    assert placement(session) == {("CPUExecutionProvider", ATTENTION): 1}
    wanted = run_attention(inputs, **attributes)["output"]
    assert run_session(session, inputs)["output"].tobytes() == wanted.tobytes()


def test_falling_back_is_said() -> None:
    done = in_process(
        """
inputs = tensors(40, 70, (128, 128), np.float32)
model = one_node_model(ATTENTION, inputs, {"output": np.float32}, {})
options = options_for({"allow_fallback": "1"})
options.log_severity_level = 2
ort.InferenceSession(model.SerializeToString(), options)
"""
    )
    wanted = (
        "ZyfaExecutionProvider: ZyfaPrefillAttention 'node' runs on the CPU: precision: expected bf16 or fp8"
    )
    assert wanted in done.stderr
    assert "ZyfaExecutionProvider: 1 of 1 nodes of ai.zyfa run on the CPU" in done.stderr


@pytest.mark.parametrize("dims", [(96, 96), (80, 80)])
def test_head_dims_are_known_before_a_run_when_shapes_are(dims: tuple[int, int]) -> None:
    inputs = tensors(40, 70, dims, np.float32)
    with pytest.raises(
        Exception, match=r"head_dim/v_head_dim: expected one of 64/64, 128/128, 192/128 \(fp8_prefill\)"
    ):
        gpu_session(model_for(inputs, static_shapes=True, precision="fp8"))
    session = gpu_session(model_for(inputs, precision="fp8"))
    with pytest.raises(Exception, match=r"ZyfaPrefillAttention 'node': head_dim/v_head_dim: expected one of"):
        run_session(session, inputs)


def test_3d_shapes_are_known_too() -> None:
    inputs = {name: x.reshape(*x.shape[:2], -1) for name, x in tensors(40, 70, (80, 80), np.float32).items()}
    with pytest.raises(Exception, match=r"head_dim/v_head_dim: .* got 80/80"):
        gpu_session(model_for(inputs, static_shapes=True, precision="bf16", num_heads=2, kv_num_heads=1))


@pytest.mark.parametrize("op", ["ZyfaHadamard", "ZyfaQuantizeFp8"])
def test_dims_of_the_other_operators(op: str) -> None:
    inputs = {"x": np.zeros((1, 2, 3, 32), np.float32)}
    outputs = {"y": np.float32} if op == "ZyfaHadamard" else {"y": float8_e4m3fn, "scale": np.float32}
    with pytest.raises(
        Exception, match=rf"{op} 'node': last dimension of x: expected one of 64, 128, 192, 256, got 32"
    ):
        gpu_session(one_node_model(op, inputs, outputs, {}, static_shapes=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp16"}, "provider option precision: expected one of node, bf16, fp8, got 'fp16'"),
        ({"allow_fallback": "yes"}, "provider option allow_fallback: expected one of 0, 1, got 'yes'"),
        ({"device_id": "first"}, "provider option device_id: expected a device number, got 'first'"),
        ({"device_id": "3"}, "provider option device_id: expected one of 0, the devices given to the provider, got 3"),
        ({"byte_rounding": "up"}, "option byte_rounding: expected one of unknown, nearest, truncate, other, got 'up'"),
        ({"arena": "1"}, "provider option arena: expected one of device_id, precision, allow_fallback, byte_rounding"),
    ],
)  # fmt: skip
def test_options(options: dict[str, str], message: str) -> None:
    inputs = tensors(40, 70, (128, 128))
    with pytest.raises(Exception) as refusal:
        gpu_session(model_for(inputs), options)
    assert message in str(refusal.value)


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_the_option_precision_stands_for_that_of_the_nodes(precision: str) -> None:
    inputs = tensors(40, 70, (128, 128), np.float32)
    session = gpu_session(model_for(inputs), {"precision": precision})
    wanted = run_session(gpu_session(model_for(inputs, precision=precision)), inputs)["output"]
    assert run_session(session, inputs)["output"].tobytes() == wanted.tobytes()


def test_the_option_precision_leaves_codes_alone_and_drops_what_only_fp8_takes() -> None:
    coded = tensors(40, 70, (128, 128), float8_e4m3fn)
    session = gpu_session(model_for(coded, out_dtype=TensorProto.FLOAT), {"precision": "bf16"})
    assert np.isfinite(run_session(session, coded)["output"]).all()
    inputs = tensors(40, 70, (128, 128), np.float32)
    fp8 = {"precision": "fp8", "rotation": "hadamard", "fp8_edges": "none"}
    session = gpu_session(model_for(inputs, **fp8), {"precision": "bf16"})
    wanted = run_session(gpu_session(model_for(inputs, precision="bf16")), inputs)["output"]
    assert run_session(session, inputs)["output"].tobytes() == wanted.tobytes()


def test_a_device_that_rounds_bytes_otherwise() -> None:
    inputs = tensors(40, 70, (128, 128), np.float32)
    with pytest.raises(Exception, match="byte_rounding: expected nearest or truncate, got other"):
        gpu_session(model_for(inputs, precision="fp8"), {"byte_rounding": "other"})


def test_attributes_are_checked_as_on_the_cpu() -> None:
    inputs = tensors(40, 70, (128, 128))
    for fallback in ("0", "1"):
        with pytest.raises(Exception, match="attribute softmax_scale is unknown, expected scale"):
            gpu_session(model_for(inputs, softmax_scale=1.0), {"allow_fallback": fallback})


def test_session_refuses_devices_that_are_not_there(tmp_path: Path) -> None:
    toy = write_toy(tmp_path / "toy.onnx")
    with pytest.raises(DeviceError, match="device_id: expected one of 0, got '7'"):
        zyfa_ort.session(toy, "gpu", provider_options={"device_id": "7"})


def test_auto_is_the_cpu_where_the_device_is_emulated(tmp_path: Path) -> None:
    toy = write_toy(tmp_path / "toy.onnx")
    assert zyfa_ort.session(toy).get_providers() == ["CPUExecutionProvider"]
    assert zyfa_ort.session(toy, "gpu").get_providers() == ["ZyfaExecutionProvider", "CPUExecutionProvider"]


def test_without_hip(tmp_path: Path) -> None:
    toy = write_toy(tmp_path / "toy.onnx")
    program = f"""
from zyfa_ort.errors import DeviceError
print(zyfa_ort.session({str(toy)!r}).get_providers())
try:
    zyfa_ort.session({str(toy)!r}, "gpu")
except DeviceError as error:
    print(error)
"""
    done = in_process(program, ZYFA_HIP_LIBRARY=str(tmp_path / "libamdhip64.so"))
    providers, message = done.stdout.splitlines()
    assert providers == "['CPUExecutionProvider']"
    assert message.startswith("ZyfaExecutionProvider: HIP: expected one of ")
    assert message.endswith("set ZYFA_HIP_LIBRARY to a HIP library; run 'zyfa-ort doctor'")


def test_a_library_that_is_not_hip(tmp_path: Path) -> None:
    program = """
from zyfa_ort.errors import DeviceError
try:
    gpu.devices()
except DeviceError as error:
    print(error)
"""
    done = in_process(program, ZYFA_HIP_LIBRARY=zyfa_ort.library_path())
    assert "has no hipInit; expected the HIP library of ROCm 6 or 7" in done.stdout


def test_another_architecture(tmp_path: Path) -> None:
    """The emulated device with another name: nothing is launched on it, and why is said."""
    other = tmp_path / "libother_hip.so"
    name, renamed = b"\0gfx950:sramecc+:xnack-\0", b"\0gfx942:sramecc+:xnack-\0"
    image = Path(hip_library_path()).read_bytes()
    assert image.count(name) == 1
    other.write_bytes(image.replace(name, renamed))
    program = """
(device,) = gpu.devices()
print(gpu.is_real(device), device.ep_metadata["architecture"])
inputs = tensors(40, 70, (128, 128))
model = one_node_model(ATTENTION, inputs, {"output": inputs["query"].dtype}, {})
for fallback in ("0", "1"):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    zyfa_ort.register(options)
    options.add_provider_for_devices([device], {"allow_fallback": fallback})
    try:
        session = ort.InferenceSession(model.SerializeToString(), options)
        print(np.isfinite(run_session(session, inputs)["output"].astype(np.float32)).all())
    except Exception as error:
        print(error)
"""
    device, refused, fell_back = in_process(program, ZYFA_HIP_LIBRARY=str(other)).stdout.splitlines()
    assert device == "False gfx942:sramecc+:xnack-"
    assert (
        "architecture: expected gfx950, got gfx942:sramecc+:xnack-; the kernels are compiled for it alone"
        in refused
    )
    assert fell_back == "True"


@pytest.mark.parametrize(("architecture", "state"), [("gfx950", "ok"), ("gfx942", "note")])
def test_doctor_names_the_devices(tmp_path: Path, architecture: str, state: str) -> None:
    image = Path(hip_library_path()).read_bytes()
    library = tmp_path / "libhip.so"
    library.write_bytes(image.replace(b"\0gfx950:sramecc", f"\0{architecture}:sramecc".encode()))
    program = """
from zyfa_ort import doctor
(finding,) = doctor._provider()
print(finding.state, finding.found)
"""
    done = in_process(program, ZYFA_HIP_LIBRARY=str(library))
    wanted = f"{state} device 0: emulated gfx950 (MI355X), {architecture}:sramecc+:xnack-"
    assert done.stdout.strip() == wanted, done.stderr


def test_doctor_says_what_is_wrong() -> None:
    program = """
from zyfa_ort import doctor
(finding,) = doctor._provider()
print(finding.state, finding.found)
"""
    done = in_process(program, ZYFA_EMULATED_FAULT="device:1+")
    assert done.stdout.strip() == "problem ZyfaExecutionProvider: HIP sees no GPU; run 'zyfa-ort doctor'"


def test_only_one_registration_is_needed() -> None:
    """The provider by name, in ONNX Runtime's own way."""
    inputs = tensors(40, 70, (64, 64))
    options = ort.SessionOptions()
    zyfa_ort.register(options)
    session = ort.InferenceSession(
        model_for(inputs).SerializeToString(),
        options,
        providers=[("ZyfaExecutionProvider", {"device_id": "0"})],
    )
    assert session.get_providers()[0] == "ZyfaExecutionProvider"
    assert run_session(session, inputs)["output"].shape == (1, 40, 2, 64)
