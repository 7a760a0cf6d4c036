"""What an attention node asks of a GPU: AttentionProblem of custom_ops/problem.hpp, and what is known besides the shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DTYPES = {"float": 4, "float16": 2, "bfloat16": 2, "float8e4m3fn": 1, "bool": 1, "int32": 4, "int64": 8}
WORDS: dict[str, tuple[str, ...]] = {
    "dtype": ("float", "float16", "bfloat16", "float8e4m3fn"),
    "out_dtype": ("float", "float16", "bfloat16"),
    "mask_dtype": ("bool", "int32", "int64"),
    "precision": ("fp32", "bf16", "fp8"),
    "fp8_edges": ("hilo", "bf16", "none"),
    "rotation": ("none", "hadamard"),
    "causal_alignment": ("bottom_right", "top_left"),
    "key_mask": ("none", "range", "holes", "unread"),
    "byte_rounding": ("unknown", "nearest", "truncate", "other"),
}
LAYOUTS = ("BSHD", "BHSD")
SCALES = ("none", "tensor", "head", "batch_head")


@dataclass(frozen=True)
class Strides:
    """In elements, of a (batch, head, row, column) view; 0 along a broadcast axis."""

    batch: int = 0
    head: int = 0
    row: int = 0
    column: int = 1


@dataclass(frozen=True)
class Problem:
    """One node on one device. Strides in elements; `make_problem` fills them in for a layout."""

    batch: int
    q_heads: int
    kv_heads: int
    q_len: int
    new_len: int
    past_len: int
    qk_dim: int
    v_dim: int
    dtype: str
    out_dtype: str
    precision: str
    query: Strides
    key: Strides
    value: Strides
    output: Strides
    scale: float
    softcap: float = 0.0
    is_causal: bool = True
    causal_alignment: str = "bottom_right"
    window_left: int = -1
    fp8_edges: str = "hilo"
    rotation: str = "none"
    q_scale: Strides = Strides()  # batch and head only
    k_scale: Strides = Strides()
    v_scale: Strides = Strides()
    bias: Strides | None = None
    mask_dtype: str = "bool"
    key_mask: str = (
        "none"  # "range": one run of visible keys per batch entry, given as key_range too; "unread": only the
    )
    # device can look at it
    sinks: bool = False
    lse: bool = False
    present_key: bool = False
    present_value: bool = False
    arch: str = "gfx950"
    byte_rounding: str = (
        "unknown"  # how v_cvt_pk_u8_f32 rounds, as a probe found it; unknown is taken for nearest
    )

    def __post_init__(self) -> None:
        for name, allowed in WORDS.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.q_heads and (not self.kv_heads or self.q_heads % self.kv_heads):
            raise ValueError(f"kv_heads: expected a divisor of q_heads {self.q_heads}, got {self.kv_heads}")

    @property
    def kv_len(self) -> int:
        return self.past_len + self.new_len

    @property
    def group_size(self) -> int:
        return self.q_heads // self.kv_heads if self.kv_heads else 1

    @property
    def diagonal(self) -> int:
        """Key position of the first query row."""
        return self.kv_len - self.q_len if self.causal_alignment == "bottom_right" else 0

    def visible_keys_of_any_row(self) -> tuple[int, int]:
        """Keys that at least one query row sees, masks aside."""
        if self.q_len == 0:
            return 0, 0
        first, last = self.diagonal, self.diagonal + self.q_len - 1
        begin = first - self.window_left if 0 <= self.window_left < first else 0
        end = min(last + 1, self.kv_len) if self.is_causal else self.kv_len
        return begin, max(end, 0)


def make_problem(
    *,
    batch: int = 1,
    q_heads: int = 1,
    kv_heads: int | None = None,
    q_len: int = 1,
    new_len: int | None = None,
    past_len: int = 0,
    qk_dim: int = 128,
    v_dim: int | None = None,
    dtype: str = "bfloat16",
    out_dtype: str | None = None,
    precision: str | None = None,
    layout: str = "BSHD",
    scale: float | None = None,
    scales: str | None = None,
    bias: tuple[int, int, int, int] | None = None,
    **rest: Any,
) -> Problem:
    """A problem with contiguous tensors.

    `scales` is the granularity of q_scale, k_scale and v_scale ("tensor" with float8e4m3fn when not given), `bias` the
    shape of attn_bias with 1 along broadcast axes. Defaults are those of the operator. Raises ValueError.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout: expected one of {', '.join(LAYOUTS)}, got {layout!r}")
    kv_heads = q_heads if kv_heads is None else kv_heads
    new_len = q_len if new_len is None else new_len
    v_dim = (128 if qk_dim == 192 else qk_dim) if v_dim is None else v_dim
    quantised = dtype == "float8e4m3fn"
    granularity = scales or ("tensor" if quantised else "none")
    if granularity not in SCALES or (granularity != "none") != quantised:
        raise ValueError(
            f"scales: expected {', '.join(SCALES[1:])} with float8e4m3fn and none without, got {granularity!r}"
        )
    return Problem(
        batch=batch,
        q_heads=q_heads,
        kv_heads=kv_heads,
        q_len=q_len,
        new_len=new_len,
        past_len=past_len,
        qk_dim=qk_dim,
        v_dim=v_dim,
        dtype=dtype,
        out_dtype=out_dtype or ("bfloat16" if quantised else dtype),
        precision=precision or {"bfloat16": "bf16", "float8e4m3fn": "fp8"}.get(dtype, "fp32"),
        query=contiguous(layout, q_heads, q_len, qk_dim),
        key=contiguous(layout, kv_heads, new_len, qk_dim),
        value=contiguous(layout, kv_heads, new_len, v_dim),
        output=contiguous(layout, q_heads, q_len, v_dim),
        scale=(qk_dim**-0.5 if qk_dim else 1.0) if scale is None else scale,
        bias=None if bias is None else _broadcast(bias),
        q_scale=_scale_strides(granularity, q_heads),
        k_scale=_scale_strides(granularity, kv_heads),
        v_scale=_scale_strides(granularity, kv_heads),
        **rest,
    )


def contiguous(layout: str, heads: int, rows: int, dim: int) -> Strides:
    """Of a whole tensor in this layout."""
    if layout == "BHSD":
        return Strides(heads * rows * dim, rows * dim, dim)
    return Strides(rows * heads * dim, dim, heads * dim)


def _scale_strides(granularity: str, heads: int) -> Strides:
    return Strides(heads if granularity == "batch_head" else 0, int(granularity in ("head", "batch_head")))


def _broadcast(shape: tuple[int, int, int, int]) -> Strides:
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(0 if size == 1 else step)
        step *= size
    column, row, head, batch = steps
    return Strides(batch, head, row, column)
