"""The application: which commands there are, and how errors leave it."""

from __future__ import annotations

import sys

import typer

from zyfa_ort.cli import compare, doctor, fuse, inspect
from zyfa_ort.cli.common import ERROR, print_error, state

app = typer.Typer(
    name="zyfa-ort",
    help="Fuse the attention of exported language models, and prove that the answers still hold.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("fuse")(fuse.fuse)
app.command("inspect")(inspect.inspect)
app.command("compare")(compare.compare)
app.command("doctor")(doctor.doctor)


@app.callback()
def _options(debug: bool = typer.Option(False, "--debug", help="Show tracebacks of errors.")) -> None:
    state.debug = debug


def main() -> None:
    """Entry point of ``zyfa-ort``: errors become one line on standard error and exit code 1."""
    try:
        app()
    except Exception as error:
        if state.debug:
            raise
        print_error(error)
        sys.exit(ERROR)
