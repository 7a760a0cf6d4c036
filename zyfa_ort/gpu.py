"""GPUs as ONNX Runtime's plugin execution provider of our library sees them (docs/gpu.md)."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zyfa_ort.errors import DeviceError
from zyfa_ort.library import library_path

if TYPE_CHECKING:
    import onnxruntime

PROVIDER = "ZyfaExecutionProvider"
ARCHITECTURE = "gfx950"
OLDEST_RUNTIME = "1.24"
_lock = threading.Lock()


def devices() -> list[Any]:
    """The ``OrtEpDevice`` of every GPU, with the provider library registered; metadata are name, architecture, device_id.

    Raises:
        DeviceError: no HIP library, no GPU, or an ONNX Runtime that is too old.
    """
    import onnxruntime as ort

    if not hasattr(ort, "register_execution_provider_library"):
        raise DeviceError(
            f"{PROVIDER}: needs ONNX Runtime {OLDEST_RUNTIME} or later, this is {ort.__version__}; upgrade onnxruntime"
        )
    with _lock:
        found = _listed(ort)
        if not found:
            try:
                ort.register_execution_provider_library(PROVIDER, library_path())
            except Exception as error:  # the binding raises a different type per cause
                raise DeviceError(f"{_reason(error)}; run 'zyfa-ort doctor'") from error
            found = _listed(ort)
    if not found:
        raise DeviceError(f"{PROVIDER}: HIP sees no GPU; run 'zyfa-ort doctor'")
    return found


def _reason(error: Exception) -> str:
    """One line, without the codes that ONNX Runtime puts in front."""
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", " ".join(str(error).split()))


def _listed(ort: Any) -> list[Any]:
    return [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]


def last_refusal() -> str:
    """Why a GPU had no memory when this process last asked; empty when it always had, or no GPU was asked."""
    import ctypes

    refusal = ctypes.CDLL(library_path()).zyfa_last_refusal
    refusal.argtypes, refusal.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_size_t
    text = ctypes.create_string_buffer(int(refusal(None, 0)) + 1)
    refusal(text, len(text))
    return text.value.decode(errors="replace")


def is_real(device: Any) -> bool:
    """Whether it is a GPU that our kernels are compiled for, and not the emulated one."""
    metadata = device.ep_metadata
    return (metadata["emulated"], metadata["architecture"].split(":")[0]) == ("0", ARCHITECTURE)


def add_provider(
    options: onnxruntime.SessionOptions, device: Any, provider_options: Mapping[str, str]
) -> None:
    """Puts the provider on one device in front of the CPU's."""
    options.add_provider_for_devices([device], completed(device, provider_options))


def completed(device: Any, provider_options: Mapping[str, str]) -> dict[str, str]:
    """The options as the provider gets them: how the device rounds bytes, where a probe has found out."""
    return {"byte_rounding": known_byte_rounding(device.ep_metadata["emulated"] == "1"), **provider_options}


def chosen(provider_options: Mapping[str, str]) -> Any:
    """The device that the option device_id names, else the first. Raises DeviceError."""
    there = {device.ep_metadata["device_id"]: device for device in devices()}
    wanted = provider_options.get("device_id", next(iter(there)))
    if wanted not in there:
        raise DeviceError(f"device_id: expected one of {', '.join(there)}, got {wanted!r}")
    return there[wanted]


def known_byte_rounding(emulated: bool) -> str:
    """As the device was found to round by ``zyfa-ort doctor --probe``; "unknown" when it was never asked."""
    from zyfa_ort import probe

    answers = probe.known_answers(emulated)
    return "unknown" if answers is None else answers.conversion or "other"
