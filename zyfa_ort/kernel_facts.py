"""Which kernel computed each attention node of a run, in which precision its two products ran, and why.

The model runs once under ONNX Runtime's profiler, which tells every node's provider and shapes. What the provider launches
for them is asked of its own table (``zyfa_ort.kernels.select``).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zyfa_ort import api, gpu, node_problem
from zyfa_ort.errors import InputError
from zyfa_ort.graph_passes import model_file, schema
from zyfa_ort.kernels.select import NoKernelError, Problem, make_problem, select
from zyfa_ort.kernels.select.table import PRODUCTS
from zyfa_ort.node_problem import Tensor

if TYPE_CHECKING:
    import onnx_ir as ir
    from numpy.typing import NDArray

_EVENT = "_kernel_time"
_CPU = {"fp32": "float", "bf16": "bfloat16", "fp8": "float8e4m3fn"}


@dataclass(frozen=True)
class KernelFact:
    """One node of one run. `qk` and `pv`: types of the numbers that the two products multiply. `kernels`: launches in their
    order, attention's among them; the CPU has one kernel, whose instruction set is the machine's. `why`: one sentence.
    """

    node: str
    provider: str
    kernels: tuple[str, ...]
    qk: str
    pv: str
    why: str


def attention_kernels(
    source: api.PathLike,
    inputs: Mapping[str, NDArray[Any]],
    device: api.Device = "auto",
    *,
    provider_options: Mapping[str, str] | None = None,
) -> list[KernelFact]:
    """Runs the model once and tells of each ``ZyfaPrefillAttention`` node what computed it; arguments as of ``session``.

    Raises:
        InputError: an input is missing, or a node has no name. Besides, whatever ``session`` and ``run`` raise.
    """
    nodes = {
        node.name or "": node
        for node in model_file.load(source).graph.all_nodes()
        if (node.domain, node.op_type) == (schema.DOMAIN, schema.PREFILL_ATTENTION)
    }
    if "" in nodes:
        raise InputError(
            f"{source}: expected a name for every {schema.PREFILL_ATTENTION} node, found one without"
        )
    given = dict(provider_options or {})
    events = _profiled(source, inputs, device, given)
    if any(event["args"]["provider"] == gpu.PROVIDER for event in events):
        given = gpu.completed(gpu.chosen(given), given)
    facts = []
    for event in events:
        name, provider = event["name"].removesuffix(_EVENT), event["args"]["provider"]
        shapes = [
            (kind.lower(), dims) for one in event["args"]["input_type_shape"] for kind, dims in one.items()
        ]
        if name in nodes:
            problem = _problem(nodes[name], shapes, given if provider == gpu.PROVIDER else {})
            facts.append(_fact(name, provider, problem))
    return list(dict.fromkeys(facts))


def problem_fact(problem: Problem, node: str = "") -> KernelFact:
    """What the GPU would launch for a problem. Raises NoKernelError."""
    choice = select(problem)
    families = [launch.row.family for launch in choice.launches]
    qk, pv = next((PRODUCTS[family] for family in families if family in PRODUCTS), ("", ""))
    kernels = tuple(launch.row.kernel for launch in choice.launches)
    return KernelFact(node, gpu.PROVIDER, kernels, qk, pv, choice.why)


def _profiled(
    source: api.PathLike, inputs: Mapping[str, NDArray[Any]], device: api.Device, given: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The profiler's events of our operator."""
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = api.session(source, device, options=options, provider_options=given)
        api.run(session, inputs)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return [
        event
        for event in events
        if event["name"].endswith(_EVENT) and event["args"].get("op_name") == schema.PREFILL_ATTENTION
    ]


def _fact(name: str, provider: str, problem: Problem) -> KernelFact:
    if provider == "CPUExecutionProvider":
        grid = _CPU[problem.precision]
        edges = (
            "; edge tiles in bfloat16" if (problem.precision, problem.fp8_edges) == ("fp8", "bf16") else ""
        )
        why = f"precision {problem.precision}: the CPU kernel takes every problem, numbers on the grid of {grid}{edges}"
        return KernelFact(name, provider, ("cpu",), grid, grid, why)
    try:
        return replace(problem_fact(problem, name), provider=provider)
    except NoKernelError as error:  # it has run, so that this is no refusal of the user's problem
        raise InputError(
            f"{schema.PREFILL_ATTENTION} '{name}': it ran, and the kernel table has no row: {error}"
        ) from error


def _problem(node: ir.Node, shapes: list[tuple[str, list[int]]], options: Mapping[str, str]) -> Problem:
    """The node with the shapes of a run, absent inputs left out of `shapes`."""
    present = [name for name, value in zip(schema.INPUTS, node.inputs, strict=False) if value is not None]
    tensors = {
        name: Tensor(dtype, tuple(shape)) for name, (dtype, shape) in zip(present, shapes, strict=True)
    }
    found = node_problem.arguments(node, tensors, options, some_length=0)
    assert found is not None  # every shape is known
    return make_problem(**found)
