"""The command line: one Typer application, one file per command."""

from __future__ import annotations

from zyfa_ort.cli.app import main

__all__ = ["main"]
