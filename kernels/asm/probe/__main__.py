"""python -m zyfa_ort.kernels.asm.probe OUT.s: the text of the probe kernels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from zyfa_ort.kernels.asm.assemble import write_atomically
from zyfa_ort.kernels.asm.probe.kernels import KERNELS
from zyfa_ort.kernels.asm.probe.text import module


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when written, 1 with one line on standard error otherwise."""
    parser = argparse.ArgumentParser(
        prog="python -m zyfa_ort.kernels.asm.probe", description="The probe kernels as assembly text"
    )
    parser.add_argument("target", metavar="OUT.s", type=Path)
    try:
        write_atomically(parser.parse_args(arguments).target, module(KERNELS).encode())
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
