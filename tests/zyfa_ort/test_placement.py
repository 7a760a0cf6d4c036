"""Where nodes run: asked of ONNX Runtime with the plugin provider on the emulated device, said in words, predicted."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
import pytest
from custom_ops.gpu_session import emulated_device
from custom_ops.layered import layered_inputs, layered_model
from custom_ops.op_session import make_session, run_session
from zyfa_ort.kernels.emulator import hip_library_path

import zyfa_ort
from zyfa_ort import env, hosts
from zyfa_ort.errors import DeviceError, InputError, PlacementError, PlacementWarning
from zyfa_ort.kernel_choice import node_kernels, with_shapes
from zyfa_ort.numerics import TOLERANCES, relative_error
from zyfa_ort.placement import Node, Placement, complaints, of_log, of_session
from zyfa_ort.placement_report import PlacementReport, placement_report
from zyfa_ort.placement_rules import predict

OURS, CPU, ROCM, MIGRAPHX = "ZyfaExecutionProvider", hosts.CPU, hosts.ROCM, hosts.MIGRAPHX
LAYERS = 32


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    emulated_device()
    monkeypatch.setenv(env.HIP_LIBRARY.name, hip_library_path())


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def quiet() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return options


# ---- sessions --------------------------------------------------------------------------------------------------------


def test_thirty_two_layers_with_the_plugin_provider_alone(tmp_path: Path) -> None:
    model, inputs = layered_model(LAYERS, ["Neg"]), layered_inputs(40)
    path = saved(tmp_path, model)
    with pytest.warns(PlacementWarning, match=r"33 of 65 nodes run on the CPU \(33 Neg\)") as caught:
        session = zyfa_ort.session(path, "gpu", options=quiet())
    assert [one.filename for one in caught] == [__file__]
    placement = of_session(session)
    assert placement is not None
    assert placement.counts == {OURS: LAYERS, CPU: LAYERS + 1}
    assert len(placement.ours(OURS)) == LAYERS
    got, wanted = run_session(session, inputs), run_session(make_session(model), inputs)
    assert relative_error(got["output"], wanted["output"]) < LAYERS * TOLERANCES["bf16"].relative
    report = placement_report(path, "gpu")
    assert (report.source, report.providers) == ("asked", placement.counts)
    assert report.copies == 2 * LAYERS
    assert [one.node for one in report.ours] == [f"attention_{i}" for i in range(LAYERS)]


def test_a_model_that_is_all_ours_is_all_on_the_gpu(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(LAYERS, []))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = zyfa_ort.session(path, "gpu", options=quiet(), strict=True)
    placement = of_session(session)
    assert placement is not None
    assert placement.counts == {OURS: LAYERS}
    assert placement_report(path, "gpu").copies == 0


def test_strict_is_an_error_with_counts(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(3, ["Neg", "Add"]))
    with pytest.raises(PlacementError, match=r"model\.onnx: 8 of 11 nodes run on the CPU \(4 Neg, 4 Add\)$"):
        zyfa_ort.session(path, "gpu", options=quiet(), strict=True)
    assert zyfa_ort.session(path, "cpu", options=quiet(), strict=True).get_providers() == [CPU]


def test_nodes_of_ours_that_fall_to_the_cpu(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(2, [], precision="fp32"))
    allowed = {"allow_fallback": "1"}
    sentence = (
        r"2 of 2 nodes of ai\.zyfa run on CPUExecutionProvider instead of ZyfaExecutionProvider "
        r"\(attention_0, attention_1\)"
    )
    with pytest.warns(PlacementWarning, match=sentence):
        zyfa_ort.session(path, "gpu", options=quiet(), provider_options=allowed)
    with pytest.raises(PlacementError, match=sentence):
        zyfa_ort.session(path, "gpu", options=quiet(), provider_options=allowed, strict=True)
    report = placement_report(path, "gpu", allowed)
    assert {one.provider for one in report.ours} == {CPU}
    assert "no GPU kernel computes in fp32" in report.ours[0].kernels
    with pytest.raises(PlacementError, match="no GPU kernel computes in fp32"):
        placement_report(path, "gpu")


def test_providers_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(1, []))
    available = ", ".join(name for name in ort.get_available_providers() if name != OURS)
    with pytest.raises(
        InputError, match=f"providers: expected some of {available}, got 'NoneExecutionProvider'"
    ):
        zyfa_ort.session(path, providers=["NoneExecutionProvider"])


def test_our_provider_is_none_for_other_nodes(tmp_path: Path) -> None:
    """Not even in a process that has had it."""
    path = saved(tmp_path, layered_model(1, []))
    zyfa_ort.session(path, "gpu", options=quiet())
    for device in ("gpu", "cpu"):
        with pytest.raises(InputError, match=rf"providers: expected some of (?!.*{OURS},).*, got '{OURS}'"):
            zyfa_ort.session(path, device, providers=[OURS])
    with pytest.raises(InputError, match=f"providers: expected a list of names, got '{CPU}'"):
        zyfa_ort.session(path, providers=CPU)


def test_provider_options_may_be_numbers(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(1, []))
    options = {"device_id": 0, "allow_fallback": 1}
    zyfa_ort.session(path, "gpu", options=quiet(), provider_options=options, strict=True)
    assert placement_report(path, "gpu", options).providers == {OURS: 1}


def test_auto_does_not_take_the_emulated_device(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(1, ["Neg"]))
    report = placement_report(path)
    assert (report.providers, report.copies, report.complaints) == ({CPU: 3}, 0, ())
    assert report.ours[0].kernels == "the CPU's kernel"


# ---- words -----------------------------------------------------------------------------------------------------------


def placed(*groups: tuple[str, str, int]) -> Placement:
    return Placement(
        tuple(
            Node(provider, op, f"{op}_{i}", "ai.zyfa" if op.startswith("Zyfa") else "")
            for provider, op, count in groups
            for i in range(count)
        )
    )


ATTENTION = "ZyfaPrefillAttention"
SAID = {
    "all is well": (
        placed((OURS, ATTENTION, 2), (MIGRAPHX, "MatMul", 3)),
        hosts.Host(OURS, None, (MIGRAPHX,)),
        [],
    ),
    "more than ten": (
        placed((OURS, ATTENTION, 12), (CPU, "MatMul", 3)),
        hosts.Host(OURS, None, (MIGRAPHX,)),
        [
            "MIGraphXExecutionProvider takes none of 3 nodes, 3 run on the CPU: it takes none from a graph with more than 10 "
            "nodes it does not know, and here are 12; what helps: AMD's plugin MIGraphX provider, zyfa_ort.migraphx, or "
            "'zyfa-ort fuse --portable' and a session without the operator library (docs/gpu.md)",
            "3 of 15 nodes run on the CPU (3 MatMul)",
        ],
    ),
    "segments too small or too large": (
        placed((OURS, ATTENTION, 2), (CPU, "MatMul", 3), (MIGRAPHX, "MaxPool", 4)),
        hosts.Host(OURS, None, (MIGRAPHX,)),
        [
            "MIGraphXExecutionProvider takes 4 of 7 nodes, 3 run on the CPU: beside nodes it does not know (here 2) it takes "
            "only segments in which some matrix product, convolution or pool has no input of more than 300 elements; what "
            "helps: AMD's plugin MIGraphX provider, zyfa_ort.migraphx, or 'zyfa-ort fuse --portable' and a session without "
            "the operator library (docs/gpu.md)",
            "3 of 9 nodes run on the CPU (3 MatMul)",
        ],
    ),
    "no code for gfx950": (
        placed((ROCM, ATTENTION, 2), (ROCM, "Add", 1), (ROCM, "Mul", 2)),
        hosts.Host(ROCM),
        [
            "3 nodes run on ROCMExecutionProvider, whose wheel (onnxruntime-rocm 1.22) has no code for gfx950 (2 Mul, 1 Add): "
            "on an MI355X their first launch is an error; use onnxruntime 1.24 or later, or your own build"
        ],
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str) -> None:
    placement, host, sentences = SAID[case]
    assert complaints(placement, host, "gpu") == sentences


def test_the_log_of_a_session_on_two_providers() -> None:
    """Lines as 1.22.2 and 1.32.0 write them."""
    at = "2026-11-30 18:28:17.8 [V:onnxruntime:, session_state.cc:1268 VerifyEachNodeIsAssignedToAnEp] "
    text = "\n".join(
        at + line
        for line in (
            "Node placements",
            " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 1",
            "  Tan (m0)",
            " Node(s) placed on [ROCMExecutionProvider]. Number of nodes: 3",
            "  ZyfaPrefillAttention (n (0))",
            "  MemcpyFromHost (Memcpy)",
            "  MemcpyToHost (Memcpy_token_0)",
        )
    )
    found = of_log(text, [(ATTENTION, "n (0)")])
    assert found.nodes == (Node(CPU, "Tan", "m0"), Node(ROCM, ATTENTION, "n (0)"))
    assert found.copies == 2


def test_the_log_of_a_session_on_one_provider() -> None:
    found = of_log(" All nodes placed on [ROCMExecutionProvider]. Number of nodes: 3", [(ATTENTION, "n0")])
    assert found.counts == {ROCM: 3}
    assert found.ours() == [Node(ROCM, ATTENTION, "n0")]
    assert found.copies == 0
    with pytest.raises(ValueError, match="log does not say where the nodes are"):
        of_log("nothing of the kind", [])


# ---- predicted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layers", "taken"), [(10, True), (11, False)])
def test_predicted_for_migraphx(tmp_path: Path, layers: int, taken: bool) -> None:
    """tests/custom_ops/wheels holds the same rule to the wheel."""
    model = with_shapes(saved(tmp_path, layered_model(layers, ["Neg", "MaxPool"])))
    found = predict(model, [], hosts.Host(OURS, None, (MIGRAPHX,)))
    assert found.counts == {OURS: layers, MIGRAPHX if taken else CPU: 2 * (layers + 1)}
    assert found.copies is None


def test_a_device_that_is_not_there_is_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "choose", no_device)
    report = placement_report(saved(tmp_path, layered_model(12, ["Neg"])), "gpu")
    assert (report.source, report.reason) == ("predicted", "HIP sees no GPU")
    assert report.providers == {OURS: 12, CPU: 13}
    missing = placement_report(tmp_path / "model.onnx", "gpu", providers=[MIGRAPHX])
    assert missing.reason == "this ONNX Runtime has no MIGraphXExecutionProvider"
    assert "more than 10 nodes it does not know, and here are 12" in missing.complaints[0]


def attention(name: str, at: str, made: str, precision: str = "bf16", **attributes: Any) -> onnx.NodeProto:
    return onnx.helper.make_node(
        ATTENTION, ["query", "key", at], [made], name, domain="ai.zyfa", precision=precision, **attributes
    )


def saved_nodes(folder: Path, nodes: list[onnx.NodeProto]) -> Path:
    """A model of these nodes, from query, key, value and a condition to output."""
    model = layered_model(1, [])
    model.graph.input.append(onnx.helper.make_tensor_value_info("condition", onnx.TensorProto.BOOL, []))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return saved(folder, model)


def both(path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]) -> list[PlacementReport]:
    """Asked on the emulated device, and predicted without one."""
    asked = placement_report(path, "gpu", options)
    with monkeypatch.context() as without:
        without.setattr(hosts, "choose", no_device)
        predicted = placement_report(path, "gpu", options)
    assert [asked.source, predicted.source] == ["asked", "predicted"]
    return [asked, predicted]


def no_device(*arguments: object) -> None:
    raise DeviceError("HIP sees no GPU")


def test_nodes_in_bodies_are_predicted_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = layered_model(1, []).graph.output[0]
    bodies = {
        "then_branch": onnx.helper.make_graph([attention("ours", "value", "output")], "t", [], [output]),
        "else_branch": onnx.helper.make_graph(
            [onnx.helper.make_node("Neg", ["query"], ["output"], "other")], "e", [], [output]
        ),
    }
    path = saved_nodes(tmp_path, [onnx.helper.make_node("If", ["condition"], ["made"], "if", **bodies)])
    model = onnx.load(path)
    model.graph.output[0].name = "made"
    onnx.save(model, path)
    for report in both(path, monkeypatch, {}):
        assert report.providers == {OURS: 1, CPU: 2}
        assert [(one.node, one.provider) for one in report.ours] == [("ours", OURS)]


def test_nodes_without_names_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [attention("", "value", "made", precision="fp32"), attention("", "made", "output")]
    for report in both(saved_nodes(tmp_path, nodes), monkeypatch, {"allow_fallback": "1"}):
        assert [one.provider for one in report.ours] == [CPU, OURS]


def test_a_session_that_would_be_refused_is_predicted_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "choose", no_device)
    path = saved(tmp_path, layered_model(2, [], precision="fp32"))
    refused = (
        "2 nodes without a GPU kernel end the session unless allow_fallback is 1 (attention_0, attention_1)"
    )
    assert placement_report(path, "gpu").complaints[0] == refused
    assert refused not in placement_report(path, "gpu", {"allow_fallback": "1"}).complaints
    assert refused not in placement_report(path).complaints


def test_for_the_cpu_ours_are_predicted_there(tmp_path: Path) -> None:
    report = placement_report(saved(tmp_path, layered_model(2, ["Neg"])), "cpu", providers=[MIGRAPHX])
    assert (report.source, report.providers) == ("predicted", {CPU: 5})


def test_what_a_session_refuses_is_refused(tmp_path: Path) -> None:
    path = saved_nodes(tmp_path, [attention("node", "value", "output", softcapp=1.0)])
    for call in (zyfa_ort.session, placement_report):
        with pytest.raises(InputError, match="attribute softcapp is unknown, expected softcap"):
            call(path, "gpu")


def test_a_model_whose_shapes_cannot_be_inferred_is_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_shapes(saved_nodes(tmp_path, [onnx.helper.make_node("Foo", ["query"], ["output"], domain="none")]))
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("rows", "precision", "options", "kernels"),
    [
        (
            "rows",
            "bf16",
            {},
            "prefill: cast_f32_bf16, bf16_prefill_d64; one query: cast_f32_bf16, decode_bf16_64_64_16, decode_combine",
        ),
        (40, "bf16", {}, "cast_f32_bf16, bf16_prefill_d64"),
        (40, "fp32", {"precision": "bf16"}, "cast_f32_bf16, bf16_prefill_d64"),
        (1, "bf16", {}, "cast_f32_bf16, decode_bf16_64_64_16, decode_combine"),
    ],
)
def test_kernels_by_shape(
    tmp_path: Path, rows: int | str, precision: str, options: dict[str, str], kernels: str
) -> None:
    path = saved(tmp_path, layered_model(2, ["Neg"], rows, precision))
    assert {one.kernels for one in node_kernels(with_shapes(path), options)} == {kernels}


def test_a_node_without_a_kernel_says_why(tmp_path: Path) -> None:
    (one,) = node_kernels(with_shapes(saved(tmp_path, layered_model(1, [], precision="fp32"))), {})
    assert one.kernels == ""
    assert one.refusal.startswith("precision: expected bf16 or fp8, got fp32")


# ---- the command -----------------------------------------------------------------------------------------------------


def zyfa(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "zyfa_ort.cli", "inspect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(12, ["Neg"]))
    done = zyfa(path, "--placement", "--device", "gpu")
    assert done.returncode == 2, done.stderr
    assert "attention_0 ... attention_11 (12 nodes)  ZyfaExecutionProvider" in done.stdout
    assert "On the CPU besides: 13 Neg" in done.stdout
    assert "13 of 25 nodes run on the CPU (13 Neg)" in done.stdout
    assert f"ONNX Runtime {ort.__version__} made this session." in done.stdout
    everything = json.loads(zyfa(path, "--placement", "--device", "gpu", "--json").stdout)
    assert everything["providers"] == {OURS: 12, CPU: 13}
    assert everything["copies"] == 24
    assert zyfa(path, "--placement", "--device", "cpu").returncode == 0


def test_the_command_predicts(tmp_path: Path) -> None:
    path = saved(tmp_path, layered_model(12, ["Neg"]))
    done = zyfa(path, "--placement", "--device", "gpu", "--provider", MIGRAPHX)
    assert done.returncode == 2, done.stderr
    assert "Nodes by provider (predicted)" in done.stdout
    assert "Predicted by rule, since this ONNX Runtime has no MIGraphXExecutionProvider." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--option", "precision"], "--option: expected KEY=VALUE, got 'precision'"),
        (["--device", "tpu"], "device: expected 'auto', 'cpu' or 'gpu', got 'tpu'"),
        (
            ["--device", "gpu", "--option", "precision=fp9"],
            "provider option precision: expected one of node, bf16, fp8",
        ),
    ],
)
def test_the_command_refuses(tmp_path: Path, arguments: list[str], wanted: str) -> None:
    done = zyfa(saved(tmp_path, layered_model(1, [])), "--placement", *arguments)
    assert done.returncode == 1
    assert wanted in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_on_nodes_without_names(tmp_path: Path) -> None:
    nodes = [attention("", "value", "made"), attention("", "made", "output")]
    done = zyfa(saved_nodes(tmp_path, nodes), "--placement", "--device", "cpu")
    assert "(unnamed) (2 nodes)  CPUExecutionProvider" in done.stdout
