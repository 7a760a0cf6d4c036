"""Output shapes of our operators from input shapes, for every tool that asks: one place, no tool's types.

A dimension is a number, a symbol's name, or None when nothing is known of it.
"""

from __future__ import annotations

from dataclasses import dataclass

Dim = int | str | None
Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class AttentionShapes:
    """Shapes of the four outputs; None where the inputs do not tell the rank."""

    output: Shape | None = None
    present_key: Shape | None = None
    present_value: Shape | None = None
    lse: Shape | None = None


def attention_shapes(
    query: Shape | None,
    key: Shape | None,
    value: Shape | None,
    past_key: Shape | None,
    *,
    has_past: bool,
    layout: str,
    num_heads: int | None,
    kv_num_heads: int | None,
) -> AttentionShapes:
    """Outputs of ``ZyfaPrefillAttention``; inputs of unknown rank give outputs of unknown rank."""
    if query is None or key is None or value is None or len({len(query), len(key), len(value)}) != 1:
        return AttentionShapes()
    if len(query) == 4:
        heads_at, rows_at = (1, 2) if layout == "BHSD" else (2, 1)
        heads, kv_heads = _or(num_heads, query[heads_at]), _or(kv_num_heads, key[heads_at])
        qk_dim, v_dim = query[3], value[3]
    elif len(query) == 3:
        rows_at, heads, kv_heads = 1, num_heads, kv_num_heads
        qk_dim, v_dim = _divided(query[2], heads), _divided(value[2], kv_heads)
    else:
        return AttentionShapes()
    batch, rows, new_keys = query[0], query[rows_at], key[rows_at]
    past = past_key[2] if has_past and past_key is not None and len(past_key) == 4 else None
    keys = joined(past, new_keys) if has_past else new_keys
    output: Shape = (batch, rows, heads, v_dim)
    if len(query) == 3:
        output = (batch, rows, heads * v_dim if isinstance(heads, int) and isinstance(v_dim, int) else None)
    elif layout == "BHSD":
        output = (batch, heads, rows, v_dim)
    return AttentionShapes(
        output, (batch, kv_heads, keys, qk_dim), (batch, kv_heads, keys, v_dim), (batch, heads, rows)
    )


def scale_shape(x: Shape | None, granularity: str, layout: str) -> Shape | None:
    """Scale output of ``ZyfaQuantizeFp8``."""
    if granularity == "tensor":
        return (1,)
    if x is None or len(x) != 4:
        return None
    heads = x[1 if layout == "BHSD" else 2]
    return (heads,) if granularity == "head" else (x[0], heads)


def joined(first: Dim, second: Dim) -> Dim:
    """The length of two parts one after the other; symbols are joined as text, as torch's exporter does."""
    if first is None or second is None:
        return None
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return f"{first} + {second}"


def _or(number: int | None, otherwise: Dim) -> Dim:
    return otherwise if number is None else number


def _divided(width: Dim, heads: int | None) -> Dim:
    return width // heads if isinstance(width, int) and heads else None
