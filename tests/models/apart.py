"""Running a function in a process of its own: what it returns, or how it ended instead."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

# A forked process has everything imported already; the parent never opens a session, so it has no threads to lose.
CONTEXT = multiprocessing.get_context("fork")


class Ended(Exception):
    """The process was killed by a signal, took too long, or raised."""


def run_apart(function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
    """The function's (picklable) result.

    Raises:
        Ended: with one line about what happened.
    """
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_child, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            process.kill()
            raise Ended(f"no result within {seconds:g} s")
        result, error = ours.recv()
    except EOFError:
        process.join()
        raise Ended(f"crash: {_signal(process.exitcode)}") from None
    finally:
        ours.close()
        process.join()
    if error:
        raise Ended(error)
    return result


def _child(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # native code writes there past sys.stderr
        os.dup2(silence, stream)
    try:
        pipe.send((function(*arguments), ""))
    except Exception as error:
        pipe.send((None, f"{type(error).__name__}: {' '.join(str(error).split())}"))


def _signal(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
