"""onnxruntime-rocm 1.22.2: its ROCm provider runs our kernels, on the emulated device behind stand-ins for ROCm.

The provider takes device memory, streams and copies from that device, whose addresses fault when the host touches them.
"""

from __future__ import annotations

from typing import Any

import pytest
from custom_ops.gpu_session import gpu_session
from custom_ops.layered import layered_inputs, layered_model
from custom_ops.op_session import run_session
from custom_ops.wheels.cases import CASES
from custom_ops.wheels.run_in import run_in
from custom_ops.wheels.sessions import digest

from zyfa_ort.numerics import TOLERANCES

pytestmark = pytest.mark.runtimes
ROCM = "ROCMExecutionProvider"


ONE_NODE = ("bf16", "fp8", "codes", "decode", "quantise", "hadamard")


@pytest.fixture(scope="module")
def one_nodes() -> dict[str, Any]:
    return run_in(
        "rocm",
        f"""
found = {{}}
for name in {ONE_NODE}:
    case = CASES[name]
    model, inputs = case.model(), case.inputs()
    session = session_on_gpu(model)
    got, wanted = run_session(session, inputs), run_session(make_session(model), inputs)
    first = next(iter(got))
    error = relative_error(got[first].astype(np.float64), wanted[first].astype(np.float64))
    found[name] = [session.get_providers()[0], error, digest(got) == digest(wanted), digest(got), finding()]
answer(found)
""",
    )


@pytest.mark.parametrize("case", ONE_NODE)
def test_one_node(case: str, one_nodes: dict[str, Any]) -> None:
    """The bits are those of the plugin provider in this process."""
    provider, error, same, bits, complaint = one_nodes[case]
    assert provider == ROCM
    bound = CASES[case].bound
    assert same if bound is None else error < bound
    assert complaint == ""
    assert bits == digest(run_session(gpu_session(CASES[case].model()), CASES[case].inputs()))


@pytest.mark.parametrize("case", ["codes", "quantise"])
def test_one_node_is_nowhere_else(case: str) -> None:
    found = run_in("rocm", f"answer(placed(CASES[{case!r}].model()))")
    assert found == {"counts": {ROCM: 1}, "ours": {ROCM: 1}, "copies": 0}


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
output = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(inputs["value"]), "cuda", 0)
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


def test_sessions_share_the_device_and_give_its_memory_back() -> None:
    """What a mask with holes did is told to the session that had it, or at the end, and to no other."""
    found = run_in(
        "rocm",
        """
import gc, os, tempfile
before = free_memory()
holes, plain = CASES["a mask with holes"], CASES["fp8"]
first, second = session_on_gpu(holes.model()), session_on_gpu(plain.model())
run_session(first, holes.inputs())
other = [message(lambda: run_session(second, plain.inputs())) for _ in range(2)]
own = message(lambda: run_session(first, holes.inputs()))
run_session(session_on_gpu(holes.model()), holes.inputs())
with tempfile.TemporaryFile("w+") as said:
    held = os.dup(2)
    os.dup2(said.fileno(), 2)
    del first, second
    gc.collect()
    os.dup2(held, 2)
    said.seek(0)
    answer([other, own, said.read(), free_memory() == before])
""",
    )
    other, own, at_the_end, given_back = found
    assert other == ["no error"] * 2
    assert "key_mask: expected one run of visible keys" in own
    assert "key_mask: expected one run of visible keys" in at_the_end
    assert given_back


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
    "mask with holes": (  # found by the device, told by the next launch
        """(lambda case: (lambda session: message(lambda: [run_session(session, case.inputs()) for _ in range(2)]))(
            session_on_gpu(case.model())))(CASES["a mask with holes"])""",
        "key_mask: expected one run of visible keys per batch entry with precision fp8",
    ),
}


@pytest.fixture(scope="module")
def refusals() -> dict[str, str]:
    calls = ", ".join(f"{name!r}: {call}" for name, (call, _) in REFUSED.items())
    return run_in("rocm", f"answer({{{calls}}})")


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str, refusals: dict[str, str]) -> None:
    assert REFUSED[case][1] in refusals[case]


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
