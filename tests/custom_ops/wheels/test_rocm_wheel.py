"""onnxruntime-rocm 1.22.2: its ROCm provider runs our kernels, on the emulated device behind stand-ins for ROCm.

The provider takes device memory, streams and copies from that device, whose addresses fault when the host touches them.
"""

from __future__ import annotations

import pytest
from custom_ops.gpu_session import gpu_session, run_op_on_gpu
from custom_ops.layered import layered_inputs, layered_model
from custom_ops.op_session import INPUTS, run_session
from custom_ops.wheels.run_in import run_in
from custom_ops.wheels.sessions import digest

from zyfa_ort.numerics import TOLERANCES

pytestmark = pytest.mark.runtimes
ROCM = "ROCMExecutionProvider"

# Expressions, since both this process and the wheel's evaluate them: inputs, attributes, tolerance against the CPU.
NODES = {
    "bf16": (
        "ZyfaPrefillAttention",
        "{'query': gaussian(1, 2, 40, 4, 128, dtype=bfloat16), 'key': gaussian(2, 2, 90, 2, 128, dtype=bfloat16), "
        "'value': gaussian(3, 2, 90, 2, 128, dtype=bfloat16), 'key_mask': np.arange(180).reshape(2, 90) % 7}",
        "{}",
        TOLERANCES["bf16"].relative,
    ),
    "fp8": (
        "ZyfaPrefillAttention",
        "{'query': gaussian(1, 1, 40, 2, 128), 'key': gaussian(2, 1, 60, 2, 128), 'value': gaussian(3, 1, 60, 2, 128), "
        "'past_key': gaussian(4, 1, 2, 30, 128), 'past_value': gaussian(5, 1, 2, 30, 128)}",
        "{'precision': 'fp8', 'rotation': 'hadamard'}",
        TOLERANCES["fp8_model"].relative,
    ),
    # Scales are device memory, too.
    "codes": (
        "ZyfaPrefillAttention",
        "{'query': gaussian(1, 1, 40, 2, 128, dtype=float8_e4m3fn, factor=30), "
        "'key': gaussian(2, 1, 90, 2, 128, dtype=float8_e4m3fn, factor=30), "
        "'value': gaussian(3, 1, 90, 2, 128, dtype=float8_e4m3fn, factor=30), "
        "'q_scale': np.full(1, 0.03, np.float32), 'k_scale': np.full(2, 0.02, np.float32), "
        "'v_scale': np.full((1, 2), 0.04, np.float32)}",
        "{'out_dtype': 1}",
        TOLERANCES["fp8_model"].relative,
    ),
    "decode": (
        "ZyfaPrefillAttention",
        "{'query': gaussian(1, 1, 1, 8, 128, dtype=bfloat16), 'key': gaussian(2, 1, 1, 2, 128, dtype=bfloat16), "
        "'value': gaussian(3, 1, 1, 2, 128, dtype=bfloat16), 'past_key': gaussian(4, 1, 2, 300, 128, dtype=bfloat16), "
        "'past_value': gaussian(5, 1, 2, 300, 128, dtype=bfloat16)}",
        "{}",
        TOLERANCES["bf16"].relative,
    ),
    "quantise": ("ZyfaQuantizeFp8", "{'x': gaussian(1, 2, 30, 3, 128)}", "{'rotation': 'hadamard'}", None),
    "hadamard": ("ZyfaHadamard", "{'x': gaussian(1, 2, 30, 3, 192)}", "{}", TOLERANCES["fp32"].relative),
}
OUTPUTS = {
    "ZyfaPrefillAttention": "attention_outputs(inputs, attributes, ['output'])",
    "ZyfaQuantizeFp8": "{'y': float8_e4m3fn, 'scale': np.float32}",
    "ZyfaHadamard": "{'y': np.float32}",
}


@pytest.mark.parametrize("case", NODES)
def test_one_node(case: str) -> None:
    """On the ROCm provider and nowhere else; the bits are those of the plugin provider in this process."""
    op, inputs_text, attributes_text, tolerance = NODES[case]
    found = run_in(
        "rocm",
        f"""
from ml_dtypes import bfloat16, float8_e4m3fn
inputs, attributes = {inputs_text}, {attributes_text}
model = one_node_model({op!r}, inputs, {OUTPUTS[op]}, attributes)
got = run_session(session_on_gpu(model, strict=True), inputs)
wanted = run_session(make_session(model), inputs)
first = next(iter(got))
error = relative_error(got[first].astype(np.float64), wanted[first].astype(np.float64))
answer([placed(model), error, digest(got) == digest(wanted), digest(got), finding()])
""",
    )
    where, error, same, bits, complaint = found
    assert where == {"counts": {ROCM: 1}, "ours": {ROCM: 1}, "copies": 0}
    assert same if tolerance is None else error < tolerance
    assert complaint == ""
    inputs, attributes = eval(inputs_text), eval(attributes_text)
    assert set(inputs) <= set(INPUTS[op])
    outputs = eval(OUTPUTS[op])
    assert digest(run_op_on_gpu(op, inputs, outputs, attributes)) == bits


def test_thirty_two_layers() -> None:
    """Reshape is the ROCm provider's own and needs no kernel: everything stays on the device."""
    found = run_in(
        "rocm",
        """
model, inputs = layered_model(32, ["Reshape"]), layered_inputs(40)
got = run_session(session_on_gpu(model), inputs)
wanted = run_session(make_session(model), inputs)
answer([placed(model), relative_error(got["output"], wanted["output"]), digest(got), finding()])
""",
    )
    where, error, bits, complaint = found
    assert where["ours"] == {ROCM: 32}
    assert set(where["counts"]) == {ROCM}
    assert where["copies"] == 0
    assert error < 32 * TOLERANCES["bf16"].relative
    assert complaint == ""
    here = run_session(gpu_session(layered_model(32, ["Reshape"])), layered_inputs(40))
    assert digest(here) == bits


def test_a_node_of_the_cpu_costs_two_copies() -> None:
    found = run_in("rocm", """answer(placed(layered_model(1, ["Tan"])))""")
    # In front of and behind the one attention: both are at an end of the graph, where inputs and outputs lie on the host.
    assert found["ours"] == {ROCM: 1}
    assert found["counts"] == {ROCM: 1, "CPUExecutionProvider": 2}
    assert found["copies"] == 2


def test_built_in_kernels_have_no_code_for_gfx950() -> None:
    """Placed on the ROCm provider, said so in advance, and refused by the device."""
    found = run_in(
        "rocm",
        """
model = layered_model(3, ["Neg"])
session = session_on_gpu(model)
answer([placed(model), warned(model), refusal(model, strict=True), message(lambda: run_session(session, layered_inputs(9)))])
""",
    )
    where, warnings, strict, run = found
    assert where["counts"] == {ROCM: 7}
    (warning,) = warnings
    assert "this ONNX Runtime does not tell where nodes run" in warning
    sentence = "4 nodes run on ROCMExecutionProvider, whose wheel (onnxruntime-rocm 1.22) has no code for gfx950 (4 unnamed)"
    assert strict.startswith("PlacementError: ")
    assert sentence in strict
    assert "hipErrorNoBinaryForGpu" in run


def test_a_run_is_captured_into_a_graph_and_replayed() -> None:
    found = run_in(
        "rocm",
        """
model, inputs = layered_model(3, []), layered_inputs(40)
session = session_on_gpu(model, provider_options={"enable_hip_graph": "1"})
binding = session.io_binding()
held = {name: ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0) for name, array in inputs.items()}
for name, value in held.items():
    binding.bind_ortvalue_input(name, value)
output = ort.OrtValue.ortvalue_from_shape_and_type(inputs["value"].shape, np.float32, "cuda", 0)
binding.bind_ortvalue_output("output", output)
plain = session_on_gpu(model)
same = []
for seed in range(4):
    fresh = layered_inputs(40, seed)
    for name, value in held.items():
        value.update_inplace(fresh[name])
    session.run_with_iobinding(binding)
    wanted = run_session(plain, fresh)
    same.append(digest({"output": output.numpy()}) == digest(wanted))
answer([same, finding()])
""",
    )
    assert found == [[True] * 4, ""]


REFUSED = {
    "precision": (
        """refusal(layered_model(1, [], precision="fp32"))""",
        "ZyfaPrefillAttention 'attention_0': precision: expected bf16 or fp8, got fp32; no GPU kernel computes in fp32",
    ),
    "option": (
        """refusal(layered_model(1, []), provider_options={"precision": "bf16"})""",
        "InputError: provider_options: precision is one of ZyfaExecutionProvider, ROCMExecutionProvider takes its own",
    ),
    "provider": (
        """refusal(layered_model(1, []), providers=["TensorrtExecutionProvider"])""",
        "InputError: providers: expected some of ",
    ),
    "mask with holes": (
        """(lambda session, inputs: message(lambda: (run_session(session, inputs), run_session(session, inputs))))(
            session_on_gpu(one_node_model("ZyfaPrefillAttention", HOLES, {"output": np.float32}, {"precision": "fp8"})),
            HOLES)""",
        "key_mask: expected one run of visible keys per batch entry with precision fp8",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    call, wanted = REFUSED[case]
    found = run_in(
        "rocm",
        f"""
HOLES = {{name: gaussian(1, 1, 40, 1, 128) for name in ("query", "key", "value")}}
HOLES["key_mask"] = (np.arange(40).reshape(1, 40) % 3 != 1).astype(np.int64)
answer({call})
""",
    )
    assert wanted in found


def test_without_rocm_the_gpu_is_refused_and_auto_is_the_cpu() -> None:
    found = run_in(
        "rocm",
        """
model = layered_model(2, ["Neg"])
session = zyfa_ort.session(saved(model))
answer([refusal(model), session.get_providers(), placed(model, "auto")["counts"]])
""",
        stand_ins=False,
    )
    assert "DeviceError: ROCMExecutionProvider: ONNX Runtime could not load it" in found[0]
    assert found[1:] == [["CPUExecutionProvider"], {"CPUExecutionProvider": 5}]
