"""The application: which commands there are, and how errors leave it."""

from __future__ import annotations

import importlib.metadata
import io
import sys

import typer

from zyfa_ort.cli import compare, doctor, emulate, fuse, inspect, migraphx
from zyfa_ort.cli.common import ERROR, INTERRUPTED, print_error, state

app = typer.Typer(
    name="zyfa-ort",
    help="Fuse the attention of exported language models, and prove that the answers still hold.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("fuse")(fuse.fuse)
app.command("inspect")(inspect.inspect)
app.command("compare")(compare.compare)
app.command("emulate")(emulate.emulate)
app.command("migraphx")(migraphx.migraphx)
app.command("doctor")(doctor.doctor)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"zyfa-ort {importlib.metadata.version('zyfa_ort')}")
        raise typer.Exit


@app.callback()
def _options(
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks of errors."),
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
    ),
) -> None:
    state.debug = debug


def main() -> None:
    """Entry point of ``zyfa-ort``: errors, of usage too, become one line on standard error and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # names of a model in a terminal that cannot show them
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False))
    except (typer.Abort, KeyboardInterrupt):
        print("zyfa-ort: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Exception as error:
        if state.debug:
            raise
        print_error(error)
        sys.exit(ERROR)
