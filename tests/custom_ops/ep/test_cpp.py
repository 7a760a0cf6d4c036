"""The example of docs/cpp.md: built with the tests, run beside Python's session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from reference.toy_model import VOCABULARY, write_toy
from zyfa_ort.kernels.emulator import hip_library_path

import zyfa_ort

SOURCE = Path(__file__).with_name("example.cc")
DOCS = Path(__file__).parents[3] / "docs"
LIBRARY = "libzyfa_example.so"

# The example has ONNX Runtime's shared library, the Python package another copy of it: they do not meet.
PROGRAM = """
import ctypes, sys
import numpy as np
runtime, example, model, library, rows = sys.argv[1:]
ctypes.CDLL(runtime, ctypes.RTLD_GLOBAL)
ids = np.arange(int(rows), dtype=np.int64)
out = np.zeros(int(rows) * 1000, np.float32)
run = ctypes.CDLL(example).zyfa_example
run.restype = ctypes.c_int64
pointers = [ctypes.c_void_p(array.ctypes.data) for array in (ids, out)]
count = run(model.encode(), library.encode(), pointers[0], ctypes.c_int64(ids.size), pointers[1], ctypes.c_int64(out.size))
if count < 0:
    sys.exit(1)
out[:count].tofile(sys.stdout.buffer)
"""


def run_example(model: Path, rows: int) -> subprocess.CompletedProcess[bytes]:
    (runtime,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    example = Path(zyfa_ort.library_path()).with_name(LIBRARY)
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, runtime, example, model, zyfa_ort.library_path(), str(rows)],
        env=os.environ | {"ZYFA_HIP_LIBRARY": hip_library_path()},
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_logits_are_those_of_python(tmp_path: Path) -> None:
    toy = write_toy(tmp_path / "toy.onnx", layers=2, head_dim=64)
    zyfa_ort.fuse(toy, tmp_path / "fused.onnx", precision="fp32")
    done = run_example(tmp_path / "fused.onnx", 30)
    assert done.returncode == 0, done.stderr.decode()
    session = zyfa_ort.session(tmp_path / "fused.onnx", "gpu", provider_options={"precision": "bf16"})
    ids = np.arange(30)[None]
    wanted = zyfa_ort.run(session, {"input_ids": ids, "attention_mask": np.ones_like(ids)})["logits"]
    assert np.frombuffer(done.stdout, np.float32).tobytes() == wanted.tobytes()
    assert wanted.shape == (1, 30, VOCABULARY)


def test_errors_are_exceptions_in_words(tmp_path: Path) -> None:
    toy = write_toy(tmp_path / "toy.onnx", head_dim=16)
    zyfa_ort.fuse(toy, tmp_path / "fused.onnx", precision="bf16")
    done = run_example(tmp_path / "fused.onnx", 30)
    assert done.returncode == 1
    assert (
        b"head_dim/v_head_dim: expected one of 64/64, 128/128, 192/128, 256/256 (bf16_prefill), got 16/16"
        in done.stderr
    )


def test_the_page_shows_the_example() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    start, end = source.index("  Ort::Env env"), source.index("  const Ort::MemoryInfo cpu")
    assert source[start:end].rstrip() in (DOCS / "cpp.md").read_text(encoding="utf-8")
