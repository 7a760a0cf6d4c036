"""Numbers for the free dimensions of a model's inputs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import onnx_ir as ir

from zyfa_ort.errors import InputError

Shape = tuple[int, ...]
_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def input_shapes(
    inputs: Sequence[ir.Value], dims: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Shape]:
    """A shape for every input: given ones, else those of the model with the numbers of `dims` for its symbols.

    A symbol may be a sum or product of others, as in "past_sequence_length + 1".

    Raises:
        InputError: a dimension has no number, or `dims` and `shapes` name what the model does not have.
    """
    names = [value.name or "" for value in inputs]
    _refuse_unknown("shapes", shapes, names)
    symbols = dict.fromkeys(
        name for value in inputs for dim in (value.shape or ()) for name in _names(_symbol(dim))
    )
    _refuse_unknown("dims", dims, list(symbols))
    for name, number in dims.items():
        if number < 0:
            raise InputError(f"dims: expected a length of {name}, got {number}")
    return {value.name or "": _shape_of(value, dims, shapes.get(value.name or "")) for value in inputs}


def _refuse_unknown(what: str, given: Mapping[str, object], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"{what}: expected names of {', '.join(known) or 'nothing'}, got {name}")


def _shape_of(value: ir.Value, dims: Mapping[str, int], given: Sequence[int] | None) -> Shape:
    if value.shape is None:
        if given is None:
            raise InputError(
                f"input {value.name}: has no shape in the model; give shapes={{{value.name!r}: ...}}"
            )
        return tuple(given)
    wanted = tuple(_number(value, at, dim, dims, given) for at, dim in enumerate(value.shape))
    if given is not None and tuple(given) != wanted:
        raise InputError(f"input {value.name}: expected a shape like {_words(value)}, got {tuple(given)}")
    return wanted


def _number(
    value: ir.Value, at: int, dim: int | ir.SymbolicDim, dims: Mapping[str, int], given: Sequence[int] | None
) -> int:
    if isinstance(dim, int):
        return dim
    symbol = _symbol(dim)
    if symbol and all(name in dims for name in _names(symbol)):
        found = (
            _evaluated(ast.parse(symbol, mode="eval").body, dims) if _is_expression(symbol) else dims[symbol]
        )
        if found >= 0:
            return found
    elif given is not None and at < len(given):
        return given[at]
    missing = [name for name in _names(symbol) if name not in dims]
    advice = f"dims={{{missing[0]!r}: ...}}" if missing else f"shapes={{{value.name!r}: ...}}"
    raise InputError(f"input {value.name}: dimension {at} of {_words(value)} has no number; give {advice}")


def _words(value: ir.Value) -> str:
    return "(" + ", ".join(str(_symbol(dim) or "?") for dim in value.shape or ()) + ")"


def _symbol(dim: int | ir.SymbolicDim) -> str:
    return str(dim) if isinstance(dim, int) else str(dim.value or "")


def _parsed(symbol: str) -> ast.expr | None:
    """None for a name that is no expression, such as "audio/frames" or "s0 %"."""
    try:
        body = ast.parse(symbol, mode="eval").body
    except SyntaxError:
        return None
    for node in ast.walk(body):
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            continue
        if not isinstance(node, (ast.Name, ast.Load, ast.operator)):
            return None
    return body


def _is_expression(symbol: str) -> bool:
    return isinstance(_parsed(symbol), (ast.BinOp, ast.Constant))


def _names(symbol: str) -> list[str]:
    """Of the lengths in a symbol."""
    if not symbol or symbol.isdigit():
        return []
    body = _parsed(symbol)
    if body is None:
        return [symbol]
    return [node.id for node in ast.walk(body) if isinstance(node, ast.Name)]


def _evaluated(node: ast.expr, dims: Mapping[str, int]) -> int:
    if isinstance(node, ast.Name):
        return dims[node.id]
    if isinstance(node, ast.Constant):
        return int(str(node.value))
    assert isinstance(node, ast.BinOp)
    return _OPERATORS[type(node.op)](_evaluated(node.left, dims), _evaluated(node.right, dims))
