"""What ONNX Runtime does not check for custom operators: the names of attributes."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from zyfa_ort.errors import InputError
from zyfa_ort.graph_passes import model_file, schema


def check_nodes(path: Path) -> None:
    """Refuses nodes of the domain ``ai.zyfa`` with an attribute that no operator has: it would be ignored silently.

    Raises:
        ModelFileError: the file cannot be read.
        InputError: names the node, the attribute and the closest known one.
    """
    for node in model_file.load(path).graph.all_nodes():
        known = schema.ATTRIBUTES_OF.get(node.op_type)
        if node.domain != schema.DOMAIN or known is None:
            continue
        for name in node.attributes:
            if name not in known:
                close = get_close_matches(name, known, n=1) or [", ".join(known)]
                raise InputError(f"{node.op_type} '{node.name}': attribute {name} is unknown, expected {close[0]}")
