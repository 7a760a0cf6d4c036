"""For programs that run in the environment of a wheel: sessions there, and what they answer."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from custom_ops.layered import layered_inputs, layered_model
from custom_ops.op_session import Array, make_session, run_session
from custom_ops.wheels.cases import CASES

import zyfa_ort
from zyfa_ort import hosts
from zyfa_ort.numerics import relative_error
from zyfa_ort.placement_question import ask
from zyfa_ort.session_placement import our_nodes

__all__ = [
    "CASES", "answer", "counted", "digest", "finding", "free_memory", "hosts", "layered_inputs", "layered_model",
    "make_session", "message", "np", "ort", "placed", "refusal", "relative_error", "run_session", "saved",
    "session_on_gpu", "warned", "zyfa_ort",
]  # fmt: skip


def answer(value: Any) -> None:
    """The last line of the program's output."""
    print(json.dumps(value))


def finding() -> str:
    """What the emulated device has found or refused last."""
    library = ctypes.CDLL(os.environ["ZYFA_HIP_LIBRARY"])
    text = ctypes.create_string_buffer(1 << 16)
    library.zyfa_emulated_last_report(text, ctypes.c_size_t(len(text)))
    return text.value.decode()


def free_memory() -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert (
        ctypes.CDLL(os.environ["ZYFA_HIP_LIBRARY"]).hipMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        == 0
    )
    return free.value


def saved(model: onnx.ModelProto) -> Path:
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    onnx.save(model, path)
    return path


def session_on_gpu(model: onnx.ModelProto, **arguments: Any) -> ort.InferenceSession:
    """By zyfa_ort.session, without its warnings."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zyfa_ort.session(saved(model), "gpu", options=options, **arguments)


def placed(model: onnx.ModelProto, device: str = "gpu", **arguments: Any) -> dict[str, Any]:
    """Nodes by provider, those of ours by provider, and copies between host and device, as ONNX Runtime says."""
    path = saved(model)
    found = ask(
        path, device, arguments.get("provider_options", {}), arguments.get("providers"), our_nodes(path)
    )
    return {
        "counts": found.counts,
        "ours": counted(node.provider for node in found.ours()),
        "copies": found.copies,
    }


def counted(values: Any) -> dict[str, int]:
    return dict(Counter(values))


def digest(outputs: Mapping[str, Array]) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in outputs.values())).hexdigest()


def message(call: Any) -> str:
    """The error of a call in one line, with its type."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return "no error"


def refusal(model: onnx.ModelProto, **arguments: Any) -> str:
    return message(lambda: session_on_gpu(model, **arguments))


def warned(model: onnx.ModelProto, **arguments: Any) -> list[str]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zyfa_ort.session(saved(model), "gpu", options=options, **arguments)
    return [str(one.message) for one in caught if one.category.__name__ == "PlacementWarning"]
