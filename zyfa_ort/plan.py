"""Precision and rotation per site, as a file: what ``fuse --plan`` reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from zyfa_ort.errors import InputError

if TYPE_CHECKING:
    from zyfa_ort.graph_passes.report import SiteOptions

_KEYS = ("precision", "rotate", "fp8_edges")


def read_plan(path: str | os.PathLike[str]) -> dict[str, SiteOptions]:
    """Site options by node name, from ``{"sites": {NODE: {"precision": ..., "rotate": ..., "fp8_edges": ...}}}``.

    NODE is the name that ``inspect`` prints; an absent key keeps its default (auto, none, hilo).

    Raises:
        InputError: not a file of that form.
        GraphPassError: a value is not one of the allowed words.
    """
    from zyfa_ort.graph_passes.report import SiteOptions

    file = Path(path)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot read the plan: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file}: expected a plan in JSON: {error}") from error
    sites = content.get("sites") if isinstance(content, dict) else None
    if not isinstance(sites, dict) or not all(isinstance(choice, dict) for choice in sites.values()):
        raise InputError(f'{file}: expected {{"sites": {{node: {{"precision": ...}}}}}}')
    for node, choice in sites.items():
        for key in choice:
            if key not in _KEYS:
                raise InputError(f"{file}: site {node}: expected the keys {', '.join(_KEYS)}, got {key}")
    return {node: SiteOptions(**choice) for node, choice in sites.items()}
