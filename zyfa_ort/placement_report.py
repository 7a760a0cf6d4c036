"""Where the nodes of a model run: what ``zyfa-ort inspect --placement`` prints, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from zyfa_ort import gpu, hosts
from zyfa_ort.errors import DeviceError
from zyfa_ort.kernel_choice import NodeKernels, node_kernels, with_shapes
from zyfa_ort.placement import Placement, complaints
from zyfa_ort.placement_rules import predict


@dataclass(frozen=True)
class OurNode:
    """A node of ai.zyfa: its provider ("" when ONNX Runtime has optimised it away), and the kernels or why there are none."""

    node: str
    op: str
    provider: str
    kernels: str


@dataclass(frozen=True)
class PlacementReport:
    """`source` is "asked" when ONNX Runtime made the session, "predicted" when rules were applied, with the `reason`.

    `copies` between host and device are None where nobody says; `on_cpu` counts nodes that are not ours by operator.
    """

    source: Literal["asked", "predicted"]
    runtime: str
    reason: str
    providers: dict[str, int]
    copies: int | None
    ours: tuple[OurNode, ...]
    on_cpu: dict[str, int]
    complaints: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def placement_report(
    path: Path,
    device: str = "auto",
    provider_options: Mapping[str, str] | None = None,
    providers: Sequence[str] | None = None,
) -> PlacementReport:
    """For the arguments of ``zyfa_ort.session``; predicted where this machine or this ONNX Runtime has no such device.

    Raises:
        ModelFileError, InputError: an unusable model or argument. PlacementError: ONNX Runtime refuses the session.
    """
    import onnxruntime as ort

    given = dict(provider_options or {})
    if device == "auto":
        given.setdefault("allow_fallback", "1")
    model = with_shapes(path)
    kernels = node_kernels(model, given)
    runtime = f"ONNX Runtime {ort.__version__}"
    available = ort.get_available_providers()
    missing = [name for name in providers or () if name not in available and name == hosts.MIGRAPHX]
    try:
        if missing:
            raise DeviceError(f"this ONNX Runtime has no {missing[0]}")
        host = hosts.choose(device, given, providers)
        found = _asked(path, device, given, providers, kernels)
    except DeviceError as error:
        others = [hosts.MIGRAPHX] if providers is None and hosts.MIGRAPHX in available else providers or ()
        ours = hosts.ROCM if hosts.ROCM in available else gpu.PROVIDER
        host = hosts.Host(ours, None, tuple(others))
        found = predict(model, {one.name for one in kernels if one.refusal}, host)
        return _report("predicted", runtime, str(error), found, host, device, kernels)
    return _report("asked", runtime, "", found, host, device, kernels)


def _asked(
    path: Path,
    device: str,
    given: Mapping[str, str],
    providers: Sequence[str] | None,
    kernels: Sequence[NodeKernels],
) -> Placement:
    from zyfa_ort.placement_question import ask

    found, _ = ask(path, device, given, providers, [(one.op, one.name) for one in kernels])
    return found


def _report(
    source: Literal["asked", "predicted"],
    runtime: str,
    reason: str,
    found: Placement,
    host: hosts.Host,
    device: str,
    kernels: Sequence[NodeKernels],
) -> PlacementReport:
    return PlacementReport(
        source,
        runtime,
        reason,
        found.counts,
        found.copies,
        tuple(_our_node(found, one) for one in kernels),
        dict(Counter(node.op for node in found.others(hosts.CPU)).most_common()),
        tuple(complaints(found, host, device)),
    )


def _our_node(found: Placement, one: NodeKernels) -> OurNode:
    provider = next(
        (node.provider for node in found.ours() if (node.op, node.name) == (one.op, one.name)), ""
    )
    on_gpu = provider in (gpu.PROVIDER, hosts.ROCM)
    words = one.kernels if on_gpu else "the CPU's kernel" + (f": {one.refusal}" if one.refusal else "")
    return OurNode(one.name, one.op, provider, words if provider else "")
