"""How long fusing takes, by number of layers: `python -m graph_passes.time_fusing` in the folder tests."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import zyfa_ort
from graph_passes.decoder import Decoder, write_decoder

ROUNDS = 3


def seconds(source: Path) -> float:
    """The fastest of a few runs."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        zyfa_ort.fuse(source, source.with_name("fused.onnx"))
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    print(f"{'form':8}{'layers':>8}{'weights (GB)':>14}{'seconds':>10}")
    for form in ("sdpa", "eager"):
        for layers in (8, 16, 32, 64):
            with tempfile.TemporaryDirectory() as folder:
                source = write_decoder(Path(folder) / "model.onnx", Decoder(layers=layers, form=form))
                size = source.with_name("weights.bin").stat().st_size / 1e9
                print(f"{form:8}{layers:8}{size:14.1f}{seconds(source):10.2f}")


if __name__ == "__main__":
    main()
