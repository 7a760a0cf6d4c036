"""What is installed, what would run where, and what to do about it."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from zyfa_ort import env, hip
from zyfa_ort.errors import DeviceError, LibraryError, ProbeError
from zyfa_ort.library import library_path, register

State = Literal["ok", "note", "problem"]

# Distributions that provide the module onnxruntime; only one can be installed at a time.
_RUNTIMES = ("onnxruntime", "onnxruntime-rocm", "onnxruntime-migraphx", "onnxruntime-gpu")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
# Work-items of the emulator's trial run: one wave.
_EMULATED = 64


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, what was found, and what to do (empty when nothing)."""

    subject: str
    state: State
    found: str
    advice: str = ""


def diagnose() -> list[Finding]:
    """All findings, in reading order. Never raises: what cannot be looked at is a finding too."""
    return [finding for check in _CHECKS for finding in check()]


def to_dict(findings: list[Finding]) -> dict[str, Any]:
    """Plain data for JSON; `healthy` is false when any finding is a problem."""
    return {
        "healthy": all(finding.state != "problem" for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _package() -> Iterator[Finding]:
    yield Finding(
        "zyfa_ort", "ok", f"{importlib.metadata.version('zyfa-ort')} on Python {platform.python_version()}"
    )


def _runtime() -> Iterator[Finding]:
    installed = {name: version for name in _RUNTIMES if (version := _version(name)) is not None}
    if not installed:
        yield Finding("ONNX Runtime", "problem", "not installed", "pip install onnxruntime")
        return
    names = ", ".join(f"{name} {version}" for name, version in installed.items())
    if len(installed) > 1:
        yield Finding(
            "ONNX Runtime",
            "problem",
            names,
            "these overwrite each other's files: uninstall all, then install one",
        )
        return
    import onnxruntime as ort

    yield Finding("ONNX Runtime", "ok", f"{names}, providers {', '.join(ort.get_available_providers())}")
    yield from _amd_providers(ort.get_available_providers())


def _amd_providers(available: Sequence[str]) -> Iterator[Finding]:
    """What AMD's wheels do with models that have nodes of ours in them."""
    from zyfa_ort import hosts, placement, placement_rules

    if hosts.MIGRAPHX in available:
        yield Finding(
            "MIGraphX provider",
            "note",
            f"silently takes nothing from a graph with more than {placement.MOST_UNKNOWN} nodes it does not know; with any "
            "such node only segments in which some matrix product, convolution or pool has no input of more than "
            f"{placement_rules.MOST_ELEMENTS} elements",
            f"'zyfa-ort inspect MODEL --placement' counts; {placement.REMEDIES}",
        )
    if hosts.ROCM in available:
        yield Finding(
            "ROCm provider",
            "note",
            "runs our nodes; its own kernels in the wheel onnxruntime-rocm 1.22 have no code for gfx950",
            "on an MI355X use onnxruntime 1.24 or later",
        )


def _library() -> Iterator[Finding]:
    try:
        path = library_path()
    except LibraryError as error:
        yield Finding("operator library", "problem", str(error))
        return
    if importlib.util.find_spec("onnxruntime") is None:
        yield Finding("operator library", "ok", path)
        return
    import onnxruntime as ort

    try:
        register(ort.SessionOptions())
    except LibraryError as error:
        yield Finding("operator library", "problem", str(error))
        return
    yield Finding(
        "operator library",
        "ok",
        path,
        "in your own code: session_options.register_custom_ops_library(zyfa_ort.library_path())",
    )
    yield from _smoke_test()


def _smoke_test() -> Iterator[Finding]:
    from zyfa_ort.api import flash_attn_func

    values = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    zeros = np.zeros_like(values)
    try:
        means = np.ravel(flash_attn_func(zeros, zeros, values))
    except Exception as error:  # whatever it is, it is the finding
        yield Finding("CPU kernel", "problem", " ".join(str(error).split()))
        return
    # Equal scores: every row is the mean of the values it sees.
    right = np.allclose(means, [0.0, 0.5, 1.0, 1.5])
    found = "computes the right answer" if right else f"expected 0, 0.5, 1, 1.5, got {means.tolist()}"
    yield Finding("CPU kernel", "ok" if right else "problem", found)


def _gpu() -> Iterator[Finding]:
    architectures = _gpu_architectures()
    library = next((name for name in hip.candidates() if _loads(name)), None)
    if not architectures:
        yield Finding(
            "AMD GPU", "note", "none on this machine", "models run on the CPU kernel, with the same numerics"
        )
    else:
        yield Finding("AMD GPU", "ok", ", ".join(architectures))
    yield Finding(
        "ROCm (HIP)",
        "ok" if library else "note",
        library or f"none of {', '.join(hip.candidates())} can be loaded",
    )
    from zyfa_ort.kernels import code_objects

    count = len(code_objects.names())
    yield Finding(
        "GPU kernels",
        "note",
        f"{count} gfx950 code objects" if count else "this build has none",
        "used by zyfa_ort.session(path, device='gpu') on a gfx950 with ROCm, and on the emulated device",
    )


def _provider() -> Iterator[Finding]:
    """What our plugin provider would run on; only where there is a HIP library to open."""
    if importlib.util.find_spec("onnxruntime") is None or not any(map(_loads, hip.candidates())):
        return
    import onnxruntime as ort

    from zyfa_ort import gpu, hosts

    if hosts.ROCM in ort.get_available_providers():
        return
    subject = "GPU provider"
    try:
        found = gpu.devices()
    except (DeviceError, LibraryError) as error:
        yield Finding(subject, "problem", str(error))
        return
    for device in found:
        metadata = device.ep_metadata
        fits = metadata["architecture"].split(":")[0] == gpu.ARCHITECTURE
        yield Finding(
            subject,
            "ok" if fits else "note",
            f"device {metadata['device_id']}: {metadata['name']}, {metadata['architecture']}",
            "zyfa_ort.session(path, device='gpu')"
            if fits
            else f"its kernels are for {gpu.ARCHITECTURE}: models run on the CPU",
        )


def _probes() -> Iterator[Finding]:
    """What a device was found to do; only where there is one, or where somebody asked one."""
    from zyfa_ort import probe

    subject = "device probes"
    try:
        known = probe.known_answers(emulated=False)
    except ProbeError as error:
        yield Finding(subject, "problem", str(error))
        return
    if known is not None:
        wrong = (
            f"no valid kernel for {', '.join(known.missing)}"
            if known.missing
            else "valid kernels for everything"
        )
        yield Finding(subject, "problem" if known.missing else "ok", f"{known.title}: {wrong}")
    elif probe.ARCHITECTURE in _gpu_architectures():
        yield Finding(subject, "note", "this GPU was never asked", "zyfa-ort doctor --probe")


def _emulator() -> Iterator[Finding]:
    subject = "emulated gfx950"
    try:
        from zyfa_ort.kernels import code_objects, emulator

        a, b, total = (np.arange(_EMULATED, dtype=np.float32) * factor for factor in (1, 2, 0))
        code = code_objects.load("selfcheck")
        count = np.int32(_EMULATED)
        result = emulator.launch(code, "vector_add", 1, _EMULATED, [a, b, total, count], report_only=True)
    except Exception as error:  # whatever it is, it is the finding
        yield Finding(subject, "problem", " ".join(str(error).split()), "reinstall with 'pip install .'")
        return
    if result.errors:
        yield Finding(subject, "problem", f"finds its own kernel wrong: {result.errors[0]}")
    elif not np.array_equal(total, a + b):
        yield Finding(subject, "problem", "executes its own kernel, with the wrong answer")
    else:
        yield Finding(
            subject,
            "ok",
            f"executes gfx950 machine code ({result.instructions} instructions), emulated: no GPU, no clock",
            "zyfa-ort emulate CODE_OBJECT",
        )


def _environment() -> Iterator[Finding]:
    for variable in env.VARIABLES:
        value = variable.get()
        if value is not None:
            yield Finding(variable.name, "note", value, variable.meaning)


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _package,
    _runtime,
    _library,
    _gpu,
    _provider,
    _probes,
    _emulator,
    _environment,
)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _gpu_architectures() -> list[str]:
    """Architectures such as "gfx950" of the GPUs that the kernel driver reports; CPUs report version 0."""
    found = []
    for properties in sorted(_KFD_NODES.glob("*/properties")):
        try:
            match = re.search(
                r"^gfx_target_version (\d+)$", properties.read_text(encoding="ascii"), re.MULTILINE
            )
        except OSError:
            continue
        version = int(match.group(1)) if match else 0
        if version:
            found.append(f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}")
    return found
