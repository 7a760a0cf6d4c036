"""Asks ONNX Runtime where a model's nodes go: makes the session in a process of its own, with all it has to say on record.

python -m zyfa_ort.placement_question '{"path": ...}' makes it; its standard error is the log.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from zyfa_ort.errors import DeviceError, InputError, PlacementError, ZyfaError
from zyfa_ort.placement import Node, Placement, of_log, of_session

_VERBOSE = 0
_ERRORS: dict[str, type[ZyfaError]] = {kind.__name__: kind for kind in (DeviceError, InputError)}


def ask(
    path: Path,
    device: str,
    provider_options: Mapping[str, str],
    providers: Sequence[str] | None,
    ours: Sequence[tuple[str, str]],
) -> Placement:
    """Where the nodes of a session with these arguments are.

    Raises:
        DeviceError, InputError: as zyfa_ort.session. PlacementError: ONNX Runtime makes no session; with its reason.
    """
    question = {
        "path": str(path),
        "device": device,
        "provider_options": dict(provider_options),
        "providers": None if providers is None else list(providers),
    }
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "zyfa_ort.placement_question", json.dumps(question)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )
        log.seek(0)
        said = log.read()
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise PlacementError(f"{path}: ONNX Runtime ended with code {done.returncode}: {_last_line(said)}")
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise _ERRORS.get(answer["kind"], PlacementError)(answer["error"])
    logged = of_log(said, ours)
    if answer["nodes"] is None:
        return logged
    nodes = tuple(Node(**node) for node in answer["nodes"])
    return Placement(nodes, logged.copies)


def _last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def _answer(question: Mapping[str, Any]) -> dict[str, Any]:
    import onnxruntime as ort

    from zyfa_ort import hosts
    from zyfa_ort.library import register

    try:
        options = register(ort.SessionOptions())
        options.log_severity_level = _VERBOSE
        host = hosts.choose(question["device"], question["provider_options"], question["providers"])
        session = hosts.open_session(question["path"], host, options, question["provider_options"])
    except Exception as error:  # told to the asker, whatever it is
        return {"error": " ".join(str(error).split()), "kind": type(error).__name__}
    found = of_session(session)
    nodes = None if found is None else [asdict(node) for node in found.nodes]
    return {"nodes": nodes}


if __name__ == "__main__":
    print(json.dumps(_answer(json.loads(sys.argv[1]))))
