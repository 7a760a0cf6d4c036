"""The generator's command line.

python -m zyfa_ort.kernels.asm --list
python -m zyfa_ort.kernels.asm --schedule [--config NAME]
python -m zyfa_ort.kernels.asm --emit OUT.s [--config NAME]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from zyfa_ort.kernels.asm.assemble import write_atomically
from zyfa_ort.kernels.asm.fp8_config import Fp8Config, by_name, shipped
from zyfa_ort.kernels.asm.fp8_prefill import generate
from zyfa_ort.kernels.asm.fp8_report import schedule


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when done, 1 with one line on standard error otherwise."""
    parser = argparse.ArgumentParser(prog="python -m zyfa_ort.kernels.asm", description="FP8 prefill kernels")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--list", action="store_true", help="names of the configurations")
    action.add_argument("--schedule", action="store_true", help="print the schedule of a tile and its budget")
    action.add_argument("--emit", metavar="OUT.s", type=Path, help="write the assembly text")
    parser.add_argument("--config", metavar="NAME", default=Fp8Config().name, help="default: %(default)s")
    chosen = parser.parse_args(arguments)
    try:
        config = by_name(chosen.config)
        if chosen.list:
            print("\n".join(config.name for config in shipped()))
        elif chosen.schedule:
            print(schedule(config), end="")
        else:
            write_atomically(chosen.emit, generate(config).encode())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
