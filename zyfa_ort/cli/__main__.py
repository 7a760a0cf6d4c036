"""``python -m zyfa_ort.cli``: the same as ``zyfa-ort``."""

from zyfa_ort.cli.app import main

main()
