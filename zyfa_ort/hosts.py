"""Which execution providers a session gets: one for our nodes, others for the rest (docs/gpu.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zyfa_ort import gpu
from zyfa_ort.errors import DeviceError, InputError

if TYPE_CHECKING:
    import onnxruntime

CPU, ROCM, MIGRAPHX = "CPUExecutionProvider", "ROCMExecutionProvider", "MIGraphXExecutionProvider"
# Options of the plugin provider that ONNX Runtime's ROCm provider has no way to take.
_PLUGIN_ONLY = ("precision", "allow_fallback", "byte_rounding")
RECORD = "session.record_ep_graph_assignment_info"  # a session option since 1.24, ignored before


@dataclass(frozen=True)
class Host:
    """`provider` runs the nodes of ai.zyfa, `others` what they can of the rest; the CPU's is last."""

    provider: str = CPU
    device: Any = None
    others: tuple[str, ...] = ()


def in_words(provider_options: Mapping[str, Any] | None) -> dict[str, str]:
    """Options as providers take them: numbers become text."""
    return {name: str(value) for name, value in (provider_options or {}).items()}


def choose(device: str, provider_options: Mapping[str, str], providers: Sequence[str] | None = None) -> Host:
    """The host for ``zyfa_ort.session``'s arguments. Raises DeviceError, InputError."""
    import onnxruntime as ort

    if device not in ("auto", "cpu", "gpu"):
        raise InputError(f"device: expected 'auto', 'cpu' or 'gpu', got {device!r}")
    # Ours is among them once its library is registered, but is not one of those for other nodes.
    available = [name for name in ort.get_available_providers() if name != gpu.PROVIDER]
    if isinstance(providers, str):
        raise InputError(f"providers: expected a list of names, got {providers!r}")
    for name in providers or ():
        if name not in available:
            raise InputError(f"providers: expected some of {', '.join(available)}, got {name!r}")
    if device == "cpu":
        return Host(others=tuple(providers or ()))
    if ROCM in available:
        # Its wheel has no gfx950 code for nodes that are not ours, so nobody gets it who did not ask.
        return _rocm(provider_options, providers) if device == "gpu" else Host(others=tuple(providers or ()))
    found = gpu.chosen(provider_options) if device == "gpu" else _real_gpu(provider_options)
    if found is None:
        return Host(others=tuple(providers or ()))
    if providers is None and MIGRAPHX in available and (device == "gpu" or _loads(MIGRAPHX)):
        return Host(gpu.PROVIDER, found, (MIGRAPHX,))
    return Host(gpu.PROVIDER, found, tuple(providers or ()))


def _loads(name: str) -> bool:
    """Whether the libraries of a provider that this ONNX Runtime was built with are there."""
    import onnxruntime as ort

    try:
        ort.SessionOptions().add_provider(name, {})
    except RuntimeError:
        return False
    return True


def _rocm(provider_options: Mapping[str, str], providers: Sequence[str] | None) -> Host:
    for name in _PLUGIN_ONLY:
        if name in provider_options:
            raise InputError(
                f"provider_options: {name} is one of {gpu.PROVIDER}, {ROCM} takes its own; fuse the model with what it needs"
            )
    return Host(ROCM, None, tuple(providers or ()))


def _real_gpu(provider_options: Mapping[str, str]) -> Any | None:
    """A device for "auto", None where only the CPU will do."""
    try:
        found = gpu.chosen(provider_options)
    except DeviceError:
        return None
    return found if gpu.is_real(found) else None


def open_session(
    path: str, host: Host, options: onnxruntime.SessionOptions, provider_options: Mapping[str, str]
) -> onnxruntime.InferenceSession:
    """A session on the host; `options` have the operators registered. Raises DeviceError when a provider is not there."""
    import onnxruntime as ort

    options.add_session_config_entry(RECORD, "1")
    if host.provider == gpu.PROVIDER:
        gpu.add_provider(options, host.device, provider_options)
        for name in host.others:
            _add(options, name, host.device.ep_metadata["device_id"])
        session = ort.InferenceSession(path, options)
    else:
        ours = [(ROCM, dict(provider_options))] if host.provider == ROCM else []
        session = ort.InferenceSession(path, options, providers=[*ours, *host.others, CPU])
    session.disable_fallback()  # to the CPU, in the middle of a run
    for name in (host.provider, *host.others):
        if name not in session.get_providers():
            raise DeviceError(
                f"{name}: ONNX Runtime could not load it, its own message says what is missing; "
                "run 'zyfa-ort doctor'"
            )
    return session


def _add(options: onnxruntime.SessionOptions, name: str, device_id: str) -> None:
    try:
        options.add_provider(name, {"device_id": device_id} if name == MIGRAPHX else {})
    except RuntimeError as error:
        reason = " ".join(str(error).split()).rpartition("error: ")[2]
        raise DeviceError(
            f"{name}: cannot be loaded ({reason}); install ROCm with MIGraphX, or give providers=[]"
        ) from error
