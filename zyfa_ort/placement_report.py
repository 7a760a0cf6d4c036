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
from zyfa_ort.node_check import check_nodes
from zyfa_ort.placement import Placement, complaints, named
from zyfa_ort.placement_question import ask
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
    provider_options: Mapping[str, str | int] | None = None,
    providers: Sequence[str] | None = None,
) -> PlacementReport:
    """For the arguments of ``zyfa_ort.session``; predicted where this machine or this ONNX Runtime has no such device.

    Raises:
        ModelFileError, InputError: an unusable model or argument. PlacementError: ONNX Runtime refuses the session.
    """
    import onnxruntime as ort

    given = hosts.in_words(provider_options)
    if device == "auto":
        given.setdefault("allow_fallback", "1")
    check_nodes(path)
    model = with_shapes(path)
    kernels = node_kernels(model, given)
    runtime = f"ONNX Runtime {ort.__version__}"
    available = ort.get_available_providers()
    missing = [name for name in providers or () if name not in available and name == hosts.MIGRAPHX]
    try:
        if missing:
            raise DeviceError(f"this ONNX Runtime has no {missing[0]}")
        host = hosts.choose(device, given, providers)
        found = ask(path, device, given, providers, [(one.op, one.name) for one in kernels])
    except DeviceError as error:
        others = [hosts.MIGRAPHX] if providers is None and hosts.MIGRAPHX in available else providers or ()
        ours = hosts.ROCM if hosts.ROCM in available else gpu.PROVIDER
        host = hosts.Host(hosts.CPU if device == "cpu" else ours, None, tuple(others))
        found = predict(model, kernels, host)
        refused = _refused(kernels, host, given)
        return _report("predicted", runtime, str(error), found, host, device, kernels, refused)
    return _report("asked", runtime, "", found, host, device, kernels)


def _refused(kernels: Sequence[NodeKernels], host: hosts.Host, given: Mapping[str, str]) -> list[str]:
    """What a real session would be refused for, in words."""
    without = [one.name or "unnamed" for one in kernels if one.refusal]
    if not without or host.provider == hosts.CPU:
        return []
    if host.provider == gpu.PROVIDER and given.get("allow_fallback") == "1":
        return []
    remedy = "" if host.provider == hosts.ROCM else " unless allow_fallback is 1"
    return [f"{len(without)} nodes without a GPU kernel end the session{remedy} ({named(without)})"]


def _report(
    source: Literal["asked", "predicted"],
    runtime: str,
    reason: str,
    found: Placement,
    host: hosts.Host,
    device: str,
    kernels: Sequence[NodeKernels],
    refused: Sequence[str] = (),
) -> PlacementReport:
    return PlacementReport(
        source,
        runtime,
        reason,
        found.counts,
        found.copies,
        _our_nodes(found, kernels),
        dict(Counter(node.op for node in found.others(hosts.CPU)).most_common()),
        (*refused, *complaints(found, host, device)),
    )


def _our_nodes(found: Placement, kernels: Sequence[NodeKernels]) -> tuple[OurNode, ...]:
    """Nodes without a name share their providers: those without kernels are the ones on the CPU."""
    providers: dict[tuple[str, str], list[str]] = {}
    for node in found.ours():
        providers.setdefault((node.op, node.name), []).append(node.provider)
    made = []
    for one in kernels:
        left = providers.get((one.op, one.name), [])
        provider = next(
            (name for name in left if (name == hosts.CPU) == bool(one.refusal)), left[0] if left else ""
        )
        if left:
            left.remove(provider)
        made.append(_our_node(one, provider))
    return tuple(made)


def _our_node(one: NodeKernels, provider: str) -> OurNode:
    on_gpu = provider in (gpu.PROVIDER, hosts.ROCM)
    words = one.kernels if on_gpu else "the CPU's kernel" + (f": {one.refusal}" if one.refusal else "")
    return OurNode(one.name, one.op, provider, words if provider else "")
