"""Sessions on the emulated MI355X: the plugin provider with the emulated HIP device behind it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
from custom_ops.op_session import ATTENTION, Array, attention_outputs, one_node_model, run_session
from zyfa_ort.kernels.emulator import hip_library_path

import zyfa_ort
from zyfa_ort import env, gpu

QUIET = 4


def emulated_device() -> Any:
    """The emulated device; HIP's library is opened once per process, by the first who asks."""
    before = os.environ.get(env.HIP_LIBRARY.name)
    os.environ[env.HIP_LIBRARY.name] = hip_library_path()
    try:
        (device,) = gpu.devices()
    finally:
        if before is None:
            del os.environ[env.HIP_LIBRARY.name]
        else:
            os.environ[env.HIP_LIBRARY.name] = before
    assert device.ep_metadata["emulated"] == "1"
    return device


def report() -> str:
    """What the emulated device has found or refused last, warnings included."""
    library = ctypes.CDLL(hip_library_path())
    library.zyfa_emulated_last_report.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(1 << 16)
    library.zyfa_emulated_last_report(text, ctypes.c_size_t(len(text)))
    return text.value.decode()


def free_memory() -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert ctypes.CDLL(hip_library_path()).hipMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value


def options_for(
    provider_options: Mapping[str, str] | None = None, entries: Mapping[str, str] | None = None
) -> ort.SessionOptions:
    """Session options with library and provider; every node's provider is recorded."""
    options = ort.SessionOptions()
    options.log_severity_level = QUIET
    options.intra_op_num_threads = 1
    for key, value in {"session.record_ep_graph_assignment_info": "1", **(entries or {})}.items():
        options.add_session_config_entry(key, value)
    zyfa_ort.register(options)
    options.add_provider_for_devices([emulated_device()], dict(provider_options or {}))
    return options


def gpu_session(
    model: onnx.ModelProto | bytes | str | Path,
    provider_options: Mapping[str, str] | None = None,
    **entries: str,
) -> ort.InferenceSession:
    if isinstance(model, Path):
        model = str(model)
    if isinstance(model, onnx.ModelProto):
        model = model.SerializeToString()
    return ort.InferenceSession(model, options_for(provider_options, entries))


def placement(session: ort.InferenceSession) -> Counter[tuple[str, str]]:
    """How many nodes of each operator each provider has."""
    return Counter(
        (graph.ep_name, node.op_type)
        for graph in session.get_provider_graph_assignment_info()
        for node in graph.get_nodes()
    )


def run_op_on_gpu(
    op: str,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    *,
    static_shapes: bool = False,
    provider_options: Mapping[str, str] | None = None,
) -> dict[str, Array]:
    """A one-node model, wholly on the GPU."""
    model = one_node_model(op, inputs, outputs, attributes, static_shapes)
    session = gpu_session(model, provider_options, **{"session.disable_cpu_ep_fallback": "1"})
    return run_session(session, inputs)


def run_attention_on_gpu(
    inputs: Mapping[str, Array],
    outputs: Sequence[str] = ("output",),
    *,
    static_shapes: bool = False,
    provider_options: Mapping[str, str] | None = None,
    **attributes: Any,
) -> dict[str, Array]:
    types = attention_outputs(inputs, attributes, outputs)
    return run_op_on_gpu(
        ATTENTION, inputs, types, attributes, static_shapes=static_shapes, provider_options=provider_options
    )


def in_process(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, with the emulated device as HIP library unless told otherwise."""
    start = """
import numpy as np
import zyfa_ort
from custom_ops.gpu_session import *
from custom_ops.op_session import *
from kernels.select.cases import tensors
"""
    return subprocess.run(
        [sys.executable, "-P", "-c", start + program],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            env.HIP_LIBRARY.name: hip_library_path(),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
