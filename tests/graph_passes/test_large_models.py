"""Models of the size people serve: no weight is read, memory stays small, work grows with the number of layers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
import onnx
import pytest

import zyfa_ort
from graph_passes.decoder import Decoder, write_decoder
from graph_passes.on_disk import content, external, read
from graph_passes.running import assert_within, fused_session, original_session
from graph_passes.time_fusing import seconds
from zyfa_ort.numerics import MODEL_BOUNDS

LARGEST_MB, LONGEST_SECONDS = 500, 20
Form = Literal["eager", "sdpa"]
SMALL = Decoder(
    layers=2, hidden=48, heads=4, kv_heads=2, head_dim=16, inner=64, vocabulary=50, dtype=np.float32
)
# Fuses argv[1] to argv[2] and prints the summary and the peak of resident memory. getrusage would also count what the
# parent had resident when it forked.
FUSE = """
import json, re, sys, zyfa_ort
report = zyfa_ort.fuse(sys.argv[1], sys.argv[2])
peak = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())
print(json.dumps([report.summary(), report.modified, int(peak[1]) / 1024]))
"""


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_eight_gigabytes_of_weights(form: Form, apart: bool, tmp_path: Path) -> None:
    """In one sparse file or in hundreds; weights keep their place in them."""
    source, target = (
        write_decoder(tmp_path / "m.onnx", Decoder(form=form, apart=apart)),
        tmp_path / "out.onnx",
    )
    data = list(tmp_path.glob("*.bin"))
    assert sum(one.stat().st_size for one in data) > 8e9
    assert len(data) == (1 + 32 * 9 + 2 if apart else 1)
    done = subprocess.run(
        [sys.executable, "-c", FUSE, source, target], capture_output=True, check=True, timeout=600
    )
    summary, modified, megabytes = json.loads(done.stdout)
    assert (summary, modified) == ("32 of 32 attention sites fused", True)
    assert 20 < megabytes < LARGEST_MB
    assert sum(one.stat().st_blocks for one in data) == 0  # still holes: nobody wrote
    before, after = (
        {tensor.name: (tensor.dims, tensor.data_type, where) for tensor, where in external(read(path))}
        for path in (source, target)
    )
    assert after == before
    onnx.checker.check_model(target)
    assert target.stat().st_size < source.stat().st_size


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_the_decoder_computes_the_same(form: Form, past: bool, tmp_path: Path) -> None:
    """The same graph with small weights that are there."""
    decoder = replace(SMALL, form=form, past=past)
    source, target = write_decoder(tmp_path / "m.onnx", decoder), tmp_path / "out.onnx"
    data, rng = tmp_path / "weights.bin", np.random.default_rng(0)
    data.write_bytes(rng.normal(0, 0.3, data.stat().st_size // 4).astype(np.float32).tobytes())
    assert zyfa_ort.fuse(source, target, precision="fp32").fused == 2
    assert content(read(target), tmp_path) == content(read(source), tmp_path)
    length = 4 if past else 0
    mask = np.ones((2, length + 7), np.int64)
    mask[1, :3] = 0
    feeds: dict[str, Any] = {"input_ids": rng.integers(0, 50, (2, 7)), "attention_mask": mask}
    for layer in range(2 if past else 0):
        for kind in ("k", "v"):
            feeds[f"past.{layer}.{kind}"] = rng.standard_normal((2, 2, length, 16)).astype(np.float32)
    wanted = zyfa_ort.run(original_session(source), feeds)
    got = zyfa_ort.run(fused_session(target), feeds)
    seen = mask[:, length:].astype(bool)
    assert_within(got["logits"][seen], wanted["logits"][seen], MODEL_BOUNDS["fp32"].relative, "logits")


def calls(run: Callable[[], object]) -> int:
    """Function calls, Python's and C's, that `run` makes in this thread."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_work_grows_with_the_number_of_layers(form: Form, tmp_path: Path) -> None:
    """Function calls for 4, 8 and 16 layers lie on a line: the second half of the layers costs what the first did."""
    counts = []
    for layers in (2, 4, 8, 16):
        source = write_decoder(tmp_path / f"{layers}.onnx", replace(SMALL, layers=layers, form=form))
        counts.append(calls(lambda source=source: zyfa_ort.fuse(source, tmp_path / "out.onnx")))
    per_layer = [
        (after - before) / layers
        for before, after, layers in zip(counts[1:], counts[2:], (4, 8), strict=False)
    ]
    assert per_layer[1] < 1.1 * per_layer[0]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_seconds(form: Form, tmp_path: Path) -> None:
    """Generous bounds: 32 layers of 8 GB take 2 s on one core of 2023, four times 8 layers."""
    eight, thirty_two = (
        seconds(write_decoder(tmp_path / f"{layers}.onnx", Decoder(layers=layers, form=form)))
        for layers in (8, 32)
    )
    assert thirty_two < LONGEST_SECONDS
    assert thirty_two < 6 * eight
