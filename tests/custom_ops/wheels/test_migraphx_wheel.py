"""onnxruntime-migraphx 1.27.1: its MIGraphX provider beside ours in one session, on one (emulated) device.

MIGraphX is a toy here (migraphx_toy.cc), which computes what these models need; who gets which node is decided by the
wheel itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from custom_ops.gpu_session import gpu_session
from custom_ops.layered import layered_inputs, layered_model
from custom_ops.op_session import run_session
from custom_ops.wheels.run_in import run_in
from custom_ops.wheels.sessions import digest
from reference.toy_model import write_toy

import zyfa_ort
from zyfa_ort.numerics import TOLERANCES

pytestmark = pytest.mark.runtimes
OURS, MIGRAPHX, CPU = "ZyfaExecutionProvider", "MIGraphXExecutionProvider", "CPUExecutionProvider"
# A segment that the provider takes: a pool whose input has no known size.
TAKEN = ["Neg", "MaxPool"]


def test_ten_layers_share_the_device_without_a_copy() -> None:
    found = run_in(
        "migraphx",
        f"""
model, inputs = layered_model(10, {TAKEN}), layered_inputs(40)
session = session_on_gpu(model, strict=True)
got, wanted = run_session(session, inputs), run_session(make_session(model), inputs)
answer([placed(model), relative_error(got["output"], wanted["output"]), digest(got), finding(), warned(model)])
""",
    )
    where, error, bits, complaint, warnings = found
    assert where == {"counts": {OURS: 10, MIGRAPHX: 22}, "ours": {OURS: 10}, "copies": 0}
    assert error < 10 * TOLERANCES["bf16"].relative
    assert bits == digest(run_session(gpu_session(layered_model(10, TAKEN)), layered_inputs(40)))
    assert complaint == ""
    assert warnings == []


def test_migraphx_first_is_as_good() -> None:
    """Then allocator and stream are MIGraphX's, and our kernels run on them."""
    found = run_in(
        "migraphx",
        f"""
from zyfa_ort import gpu
model, inputs = layered_model(4, {TAKEN}), layered_inputs(40)
options = ort.SessionOptions()
options.log_severity_level = 4
zyfa_ort.register(options)
options.add_provider("MIGraphXExecutionProvider", {{"device_id": "0"}})
options.add_provider_for_devices(gpu.devices(), {{}})
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
session = ort.InferenceSession(str(saved(model)), options)
answer([session.get_providers()[:2], digest(run_session(session, inputs)), finding()])
""",
    )
    bits = digest(run_session(gpu_session(layered_model(4, TAKEN)), layered_inputs(40)))
    assert found == [[MIGRAPHX, OURS], bits, ""]


def test_thirty_two_layers_leave_migraphx_nothing_and_that_is_said() -> None:
    found = run_in(
        "migraphx",
        f"""
model, inputs = layered_model(32, {TAKEN}), layered_inputs(40)
got = run_session(session_on_gpu(model), inputs)
answer([placed(model), warned(model), refusal(model, strict=True), digest(got), finding()])
""",
    )
    where, warnings, strict, bits, complaint = found
    assert where == {"counts": {OURS: 32, CPU: 66}, "ours": {OURS: 32}, "copies": 64}
    sentence = (
        "MIGraphXExecutionProvider takes none of 66 nodes, 66 run on the CPU: it takes none from a graph with more than 10 "
        "nodes it does not know, and here are 32; what helps: AMD's plugin MIGraphX provider, zyfa_ort.migraphx, or "
        "'zyfa-ort fuse --portable' and a session without the operator library (docs/gpu.md)"
    )
    assert sentence in warnings[0]
    assert "66 of 98 nodes run on the CPU (33 Neg, 33 MaxPool)" in warnings[1]
    assert strict.startswith("PlacementError: ")
    assert sentence in strict
    assert complaint == ""
    assert bits == digest(run_session(gpu_session(layered_model(32, TAKEN)), layered_inputs(40)))


# Layers, their segments, rows, and whether MIGraphX takes the segments.
SEGMENTS = {
    "no matrix product or pool": (2, ["Neg", "Add", "Relu", "Neg", "Add", "Relu", "Neg"], "rows", False),
    "a weight of 4,096 elements": (2, ["MatMul"], "rows", False),
    "a pool of unknown size": (2, ["MaxPool"], "rows", True),
    "a pool of 256 elements": (2, ["MaxPool"], 4, True),
    "a pool of 320 elements": (2, ["MaxPool"], 5, False),
    "a small pool beside a weight": (2, ["MatMul", "MaxPool"], "rows", True),
    "ten": (10, TAKEN, "rows", True),
    "eleven": (11, TAKEN, "rows", False),
}


@pytest.fixture(scope="module")
def segments() -> dict[str, Any]:
    """What the wheel does, and what placement_rules says it would."""
    return run_in(
        "migraphx",
        f"""
from zyfa_ort.kernel_choice import with_shapes
from zyfa_ort.placement import of_session
from zyfa_ort.placement_rules import predict
host = hosts.Host("ZyfaExecutionProvider", None, ("MIGraphXExecutionProvider",))
found = {{}}
for name, (layers, between, rows, taken) in {SEGMENTS}.items():
    model = layered_model(layers, between, rows)
    found[name] = [of_session(session_on_gpu(model)).counts, predict(with_shapes(saved(model)), [], host).counts]
answer(found)
""",
    )


@pytest.mark.parametrize("case", SEGMENTS)
def test_segments_that_migraphx_takes(case: str, segments: dict[str, Any]) -> None:
    layers, between, _, taken = SEGMENTS[case]
    expected = {OURS: layers, MIGRAPHX if taken else CPU: (layers + 1) * len(between)}
    assert segments[case] == [expected, expected]


def test_a_portable_model_without_the_library_is_all_of_migraphx(tmp_path: Path) -> None:
    toy = write_toy(tmp_path / "toy.onnx", layers=12)
    zyfa_ort.fuse(toy, tmp_path / "fused.onnx", precision="fp32", portable=True)
    found = run_in(
        "migraphx",
        f"""
options = ort.SessionOptions()
options.log_severity_level = 4
options.add_session_config_entry(hosts.RECORD, "1")
providers = ["MIGraphXExecutionProvider", "CPUExecutionProvider"]
session = ort.InferenceSession({str(tmp_path / "fused.onnx")!r}, options, providers=providers)
answer(counted(graph.ep_name for graph in session.get_provider_graph_assignment_info() for node in graph.get_nodes()))
""",
    )
    assert set(found) == {MIGRAPHX}


def test_without_migraphx_the_session_is_refused_unless_it_is_left_out() -> None:
    found = run_in(
        "migraphx",
        """
from zyfa_ort import gpu
model = layered_model(2, ["Neg"])
gpu.is_real = lambda device: True  # for "auto", which leaves out what cannot be loaded
answer([refusal(model), placed(model, providers=[])["counts"], hosts.choose("auto", {}).others])
""",
        stand_ins=False,
    )
    wanted = "DeviceError: MIGraphXExecutionProvider: cannot be loaded (libmigraphx_c.so.3: cannot open shared object file"
    assert wanted in found[0]
    assert "install ROCm with MIGraphX, or give providers=[]" in found[0]
    assert found[1:] == [{OURS: 2, CPU: 3}, []]


def test_inspect_and_doctor_say_it_too() -> None:
    found = run_in(
        "migraphx",
        f"""
from zyfa_ort.doctor import _amd_providers
from zyfa_ort.placement_report import placement_report
report = placement_report(saved(layered_model(32, {TAKEN})), "gpu")
(finding,) = _amd_providers(ort.get_available_providers())
answer([report.to_dict(), finding.found])
""",
    )
    report, doctor = found
    assert (report["source"], report["runtime"]) == ("asked", "ONNX Runtime 1.27.1")
    assert report["providers"] == {OURS: 32, CPU: 66}
    assert report["on_cpu"] == {"Neg": 33, "MaxPool": 33}
    assert "more than 10 nodes it does not know, and here are 32" in report["complaints"][0]
    assert {one["provider"] for one in report["ours"]} == {OURS}
    assert {one["kernels"] for one in report["ours"]} == {
        "prefill: cast_f32_bf16, bf16_prefill_d64; one query: cast_f32_bf16, decode_bf16_64_64_16, decode_combine"
    }
    assert "silently takes nothing from a graph with more than 10 nodes it does not know" in doctor
