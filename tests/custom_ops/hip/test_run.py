"""Choices made true on streams of the emulated device: order, capture, status, and what is not there."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest
from custom_ops.hip.hip_window import (
    CAPTURE_GLOBAL,
    Tensors,
    WindowError,
    code_object_bytes,
    device,
    free_bytes,
)
from custom_ops.op_session import Array
from kernels.emulator.hip_api import Hip
from kernels.select.cases import tensors
from kernels.select.emulated_host import problem_of, run
from zyfa_ort.kernels import code_objects

NON_BLOCKING = 1


def inputs_and_outputs(precision: str, rows: int = 40) -> tuple[dict[str, Array], dict[str, Array]]:
    inputs = tensors(rows, 90, (128, 128), np.float32, batch=2, past=90 - rows)
    inputs["key_mask"] = np.ones((2, 90), np.int64)
    inputs["key_mask"][0, :5] = 0
    return inputs, {"output": np.zeros((2, rows, 2, 128), np.float32)}


def on_stream(hip: Hip) -> int:
    return hip.made("StreamCreateWithFlags", NON_BLOCKING)


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
@pytest.mark.parametrize("rows", [2, 40])
def test_bits_of_the_choice(precision: str, rows: int) -> None:
    hip = Hip()
    inputs, outputs = inputs_and_outputs(precision, rows)
    placed = Tensors(hip, inputs | outputs)
    stream = on_stream(hip)
    placed.run(problem_of(inputs, key_mask="unread", precision=precision), stream)
    hip.StreamSynchronize(stream)
    wanted = run(inputs, key_mask="unread", precision=precision)["output"]
    assert placed["output"].tobytes() == wanted.tobytes()
    placed.free()
    hip.StreamDestroy(stream)


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_a_stream_can_be_captured(precision: str) -> None:
    """Once memory and kernels are there; the graph computes with what the tensors hold when it runs."""
    hip = Hip()
    inputs, outputs = inputs_and_outputs(precision)
    problem = problem_of(inputs, key_mask="unread", precision=precision)
    placed = Tensors(hip, inputs | outputs)
    stream = on_stream(hip)
    placed.run(problem, stream)
    hip.StreamSynchronize(stream)
    hip.StreamBeginCapture(stream, CAPTURE_GLOBAL)
    for _ in range(2):  # the second finds the first one's workspace
        placed.run(problem, stream)
    graph = hip.end_capture(stream)
    executable = hip.made("GraphInstantiate", graph, 0, 0, 0)
    # The graph's workspace is its own: other work of the same sizes gets another one.
    before = free_bytes(hip)
    placed.run(problem, stream)
    hip.StreamSynchronize(stream)
    assert free_bytes(hip) < before
    inputs["query"] = np.ascontiguousarray(inputs["query"][::-1])
    inputs["key_mask"][1, 70:] = 0
    for name in ("query", "key_mask"):
        hip.Memcpy(placed.places[name], inputs[name], inputs[name].nbytes, 1)
    hip.GraphLaunch(executable, stream)
    hip.StreamSynchronize(stream)
    wanted = run(inputs, key_mask="unread", precision=precision)["output"]
    assert placed["output"].tobytes() == wanted.tobytes()
    hip.GraphExecDestroy(executable)
    hip.GraphDestroy(graph)
    hip.StreamDestroy(stream)
    placed.free()


def test_holes_on_a_stream_of_somebody_else_are_said_at_the_next_launch() -> None:
    """Nobody of ours waits for it. The output is NaN until then."""
    hip = Hip()
    inputs, outputs = inputs_and_outputs("fp8")
    inputs["key_mask"][1, 50] = 0
    problem = problem_of(inputs, key_mask="unread", precision="fp8")
    placed = Tensors(hip, inputs | outputs)
    stream = on_stream(hip)
    placed.run(problem, stream)
    hip.StreamSynchronize(stream)
    output = placed["output"]
    assert np.isfinite(output[0]).all()
    assert np.isnan(output[1]).all()
    with pytest.raises(WindowError, match=r"^key_mask: expected one run of visible keys per batch entry"):
        placed.run(problem, stream)
    hip.Memcpy(placed.places["key_mask"], np.ones((2, 90), np.int64), 2 * 90 * 8, 1)
    placed.run(problem, stream)
    hip.StreamSynchronize(stream)
    assert np.isfinite(placed["output"]).all()
    placed.free()
    hip.StreamDestroy(stream)


def test_problems_without_a_kernel_are_refused_before_anything_is_launched() -> None:
    inputs = tensors(40, 40, (80, 80))
    with pytest.raises(WindowError, match=r"^head_dim/v_head_dim: expected one of"):
        Tensors(Hip(), {}).run(problem_of(inputs), 0)


def test_devices() -> None:
    assert device(0) == "emulated gfx950 (MI355X)|gfx950:sramecc+:xnack-"
    for ordinal in (1, -1):
        with pytest.raises(WindowError, match=rf"^device_id: expected a number below 1, .* got {ordinal}$"):
            device(ordinal)


def test_code_objects_beside_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert code_object_bytes("quantize") == len(code_objects.load("quantize"))
    # Python's os.environ is the process's environment, which the library reads.
    monkeypatch.setenv("ZYFA_CODE_OBJECTS", f"{tmp_path}:{tmp_path / 'more'}")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "quantize.co").write_bytes(b"12345")
    assert code_object_bytes("quantize") == 5
    folders = re.escape(f"{tmp_path}, {tmp_path / 'more'}")
    with pytest.raises(
        WindowError, match=rf"^code object 'decode': expected decode.co in one of {folders}; reinstall"
    ):
        code_object_bytes("decode")


def test_the_device_that_was_current_stays_current() -> None:
    current = ctypes.c_int(-1)
    hip = Hip()
    device(0)
    hip.GetDevice(ctypes.byref(current))
    assert current.value == 0
