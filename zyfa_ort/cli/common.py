"""What the commands share: exit codes, tables, progress, JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

ERROR = 1  # something is wrong with an input, a file or this machine
INTERRUPTED = 130  # what shells give a command that Ctrl-C ended
BOUND_PASSED = 2  # the work was done, and the result is not what was asked for

# Columns whose cells are read as one word.
_WHOLE = ("status", "heads", "head dim", "layout", "precision", "cache")

JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON instead of tables.")]


@dataclass
class _State:
    debug: bool = False


state = _State()


def console(stderr: bool = False) -> Console:
    """A console on the current streams; as wide as its tables need when the output is not a terminal."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, width=None if terminal else 200)


def print_error(error: Exception) -> None:
    """One line on standard error."""
    # Errors of usage are worded by the command line itself.
    format_usage = getattr(error, "format_message", None)
    text = " ".join(str(format_usage() if format_usage else error).split()) or type(error).__name__
    print(f"zyfa-ort: {text}", file=sys.stderr)


def print_json(data: Any) -> None:
    """Indented JSON on standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def shown(text: str) -> str:
    """A name from a model as a terminal may get it: control characters written out."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def table(title: str, *columns: str) -> Table:
    """An empty table in the house style."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=None,
        pad_edge=False,
        min_width=len(title),
    )
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in _WHOLE)
    return made


@contextlib.contextmanager
def working(what: str, quiet: bool) -> Iterator[None]:
    """Says what is going on while it lasts: a spinner on a terminal, one plain line elsewhere; nothing when quiet."""
    if quiet:
        yield
        return
    out = console(stderr=True)
    if not out.is_terminal:
        print(what, file=sys.stderr, flush=True)
        yield
        return
    with out.status(what):
        yield
