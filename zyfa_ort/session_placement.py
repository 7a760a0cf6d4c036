"""What ``zyfa_ort.session`` says about where the nodes of its session are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zyfa_ort import hosts, placement
from zyfa_ort.errors import PlacementError, PlacementWarning
from zyfa_ort.graph_passes import model_file, schema

_CALLER = 4  # frames up: of zyfa_ort.session
_UNKNOWN = (
    "this ONNX Runtime does not tell where nodes run; 'zyfa-ort inspect MODEL --placement --device gpu' and "
    "strict=True find out"
)


def check_placement(
    session: Any,
    path: Path,
    host: hosts.Host,
    device: str,
    provider_options: Mapping[str, str],
    providers: Sequence[str] | None,
    strict: bool,
) -> None:
    """Warns of nodes that are not where one would expect. Raises PlacementError instead when `strict`.

    Before ONNX Runtime 1.24 a session does not tell: a strict one is asked for again in a process of its own, of any other
    on a GPU the warning is that nobody knows.
    """
    found = placement.of_session(session)
    if found is None and strict:
        from zyfa_ort.placement_question import ask

        found = ask(path, device, provider_options, providers, our_nodes(path))
    if found is None:
        if device == "gpu":
            _warn(f"{path}: {_UNKNOWN}")
        return
    said = placement.complaints(found, host, device)
    if strict and said:
        raise PlacementError(f"{path}: {'; '.join(said)}")
    for sentence in said:
        _warn(f"{path}: {sentence}")


def _warn(text: str) -> None:
    warnings.warn(text, PlacementWarning, stacklevel=_CALLER)


def our_nodes(path: Path) -> list[tuple[str, str]]:
    """Operator and name of every node of ai.zyfa, bodies included."""
    nodes = model_file.load(path).graph.all_nodes()
    return [(node.op_type, node.name or "") for node in nodes if node.domain == schema.DOMAIN]
