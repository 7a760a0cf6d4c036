"""Argument values of each kernel by name, and which tensors its pointers point to."""

from __future__ import annotations

from zyfa_ort.kernels.select.choice import At
from zyfa_ort.kernels.select.problem import DTYPES, Problem, Strides
from zyfa_ort.kernels.select.tensors import Bytes, Sizes, Tensor, Tensors

Values = dict[str, int | float]
Places = dict[str, At | None]

OUTPUT_CODES = {"bfloat16": 0, "float16": 1, "float": 2}  # OutputType of prefill_arguments.hpp
DECODE_CODES = {"bfloat16": 0, "float16": 1, "float": 2, "float8e4m3fn": 3}  # DecodeType
GRANULARITIES = {"tensor": 0, "head": 1, "batch_head": 2}  # QuantizeGranularity


def group_reciprocal(group: int) -> int:
    return 0 if group == 1 else -(-(2**32) // group)


def _window(p: Problem) -> int:
    """More than every distance says nothing more."""
    return -1 if p.window_left < 0 else min(p.window_left, p.q_len + p.kv_len, 2**31 - 1)


def _rows(p: Problem, t: Tensors) -> Values:
    """Strides and sizes that both prefill kernels take under the same names."""
    values: Values = {}
    for letter, tensor in (("q", t.query), ("k", t.key), ("v", t.value), ("o", t.output)):
        values |= dict(
            zip((f"{letter}_batch", f"{letter}_head", f"{letter}_row"), tensor.strides, strict=True)
        )
    return values | {
        "lse_batch": 4 * p.q_heads * p.q_len,
        "lse_head": 4 * p.q_len,
        "queries": p.q_len,
        "keys": p.kv_len,
        "group_reciprocal": group_reciprocal(p.group_size),
        "causal": int(p.is_causal),
        "diagonal": p.diagonal,
        "window_left": _window(p),
        "scale": p.scale,
    }


def _optional(p: Problem, t: Tensors) -> Places:
    return {
        "lse": At("lse") if p.lse else None,
        "key_range": t.key_range,
        "sinks": At("sinks") if p.sinks else None,
    }


def fp8_arguments(p: Problem, t: Tensors) -> tuple[Values, Places]:
    values = _rows(p, t) | {"o_queries": p.q_len}
    for name, strides in t.scale_strides.items():
        values |= {f"{name}_batch": strides.batch, f"{name}_head": strides.head}
    places = _optional(p, t) | {
        "query": t.query.at,
        "key": t.key.at,
        "value": t.value.at,
        "output": t.output.at,
    }
    return values, places | t.scales


def bf16_arguments(p: Problem, t: Tensors) -> tuple[Values, Places]:
    size = DTYPES[t.bias_dtype]
    bias = (p.bias.batch, p.bias.head, p.bias.row, p.bias.column) if p.bias is not None else (0, 0, 0, 0)
    names = ("bias_batch", "bias_head", "bias_row", "bias_column")
    values = _rows(p, t) | {name: size * step for name, step in zip(names, bias, strict=True)}
    values |= {
        "mask_batch": p.kv_len if t.key_mask is not None else 0,
        "bias_is_float": int(t.bias_dtype == "float"),
        "softcap": p.softcap,
        "output_type": OUTPUT_CODES[p.out_dtype],
        "reserved": 0,
    }
    places = _optional(p, t) | {
        "query": t.query.at,
        "key": t.key.at,
        "value": t.value.at,
        "output": t.output.at,
    }
    return values, places | {"key_mask": t.key_mask, "bias": t.bias}


def decode_arguments(p: Problem, t: Tensors, splits: int) -> tuple[Values, Places]:
    values: Values = {}
    for letter, tensor in (("q", t.query), ("k", t.key), ("v", t.value), ("out", t.output)):
        values |= dict(
            zip((f"{letter}_batch", f"{letter}_head", f"{letter}_row"), tensor.strides, strict=True)
        )
    for name, strides in t.scale_strides.items():
        values |= {f"{name}_batch": strides.batch, f"{name}_head": strides.head}
    values |= {
        "mask_batch": p.kv_len if t.key_mask is not None else 0,
        "heads": p.q_heads,
        "kv_heads": p.kv_heads,
        "queries": p.q_len,
        "keys": p.kv_len,
        "diagonal": p.diagonal,
        "causal": int(p.is_causal),
        "window_left": _window(p),
        "scale": p.scale,
        "v_dim": p.v_dim,
        "splits": splits,
        "q_type": DECODE_CODES[t.query.dtype],
        "out_type": DECODE_CODES[p.out_dtype],
    }
    places = _optional(p, t) | {"q": t.query.at, "k": t.key.at, "v": t.value.at, "out": t.output.at}
    return values, places | t.scales | {"key_mask": t.key_mask}


def quantize_arguments(
    x: Tensor,
    codes: Tensor,
    mask: tuple[int, int],
    sizes: Sizes,
    rotation: int,
    counted: tuple[int, int],
    granularity: str,
    blocks: int,
) -> Values:
    """`mask` is its batch stride and the bytes of a number, `counted` a range of rows."""
    values: Values = dict(zip(("batch", "heads", "rows", "dim"), sizes, strict=True))
    values |= dict(zip(("x_batch", "x_head", "x_row"), x.strides, strict=True))
    values |= dict(zip(("codes_batch", "codes_head", "codes_row"), codes.strides, strict=True))
    return values | {
        "mask_batch": mask[0],
        "mask_bytes": mask[1],
        "rotation": rotation,
        "row_begin": counted[0],
        "row_end": counted[1],
        "granularity": GRANULARITIES[granularity],
        "blocks": blocks,
    }


def rows_arguments(source: Bytes, target: Bytes, rows: int, units: int, blocks: int) -> Values:
    values: Values = dict(zip(("source_batch", "source_head", "source_row"), source, strict=True))
    values |= dict(zip(("target_batch", "target_head", "target_row"), target, strict=True))
    return values | {"rows": rows, "units": units, "blocks": blocks, "reserved": 0}


def key_range_arguments(p: Problem, q_scale: Strides) -> Values:
    return {
        "mask_batch": p.kv_len * DTYPES[p.mask_dtype],
        "mask_bytes": DTYPES[p.mask_dtype],
        "keys": p.kv_len,
        "heads": p.q_heads,
        "q_scale_batch": q_scale.batch,
        "q_scale_head": q_scale.head,
        "reserved": 0,
    }
