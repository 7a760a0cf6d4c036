"""The kernels of the package, a row each, and every refusal and reason that a choice between them can give.

custom_ops/hip/select.cc has the same rows and texts, through the header that `--emit-header` writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from zyfa_ort.kernels.asm.fp8_config import BLOCK_ROWS, VALUE_DIM, WAVES, shipped

ARCHITECTURE = "gfx950"
DECODE_QUERIES = 16  # at most so many query rows are decoded
DECODE_WORKGROUPS = 512  # what the splits of a cache add up to
DECODE_SPLIT_KEYS = 128  # a split has at least so many keys: a step of its four waves
QUANTIZE_WORKGROUPS = 1024  # four per compute unit
QUANTIZE_ELEMENTS = 2048  # of a workgroup's step: 256 work-items with 8 each
COPY_BYTES = 16  # of a work-item, where everything is a multiple of it
UNIT_ELEMENTS = 8  # of a work-item that casts
SLICE_BYTES = 256  # alignment of the parts of the workspace
ALIGNMENT = 16  # of pointers and strides, in bytes
MOST_GRID = (2**23 - 1, 65535, 65535)  # HIP: y and z below 2^16, fewer than 2^32 work-items along x
MOST_LENGTH = 2**31 - 1  # rows, keys
MOST_QUANTIZED = 2**26  # rows
# Head dims (qk, v) of FP8 prefill that run in a kernel of larger ones, with zeros behind codes and values.
PADDED_DIMS = {(64, 64): (128, 128)}
TENSOR_DIMS = (64, 128, 192, 256)  # of quantize.hip
ANY_ROW = 2**32 - 1  # a row stride of 32 bits


@dataclass(frozen=True)
class KernelRow:
    """A kernel and its limits. What a column does not concern is "" or 0.

    `reads` is the input type (of the cache in decode), `rows` how many query rows a workgroup takes. `most_row_bytes`
    bounds the row strides of key and value, `most_query_row_bytes` those of query and output.
    """

    code_object: str
    kernel: str
    family: str
    layout: str  # of the arguments, in kernels/select/layouts.py
    reads: str
    qk_dim: int
    v_dim: int
    rows: int
    work_items: int
    lds_bytes: int
    most_row_bytes: int = ANY_ROW
    most_query_row_bytes: int = ANY_ROW
    edges: str = ""
    writes: str = ""
    rounding: str = ""  # of v_cvt_pk_u8_f32, for which the kernel is made


_SHORT = {"float": "f32", "float16": "f16", "bfloat16": "bf16"}
_LONG = {short: name for name, short in _SHORT.items()}


def _fp8_rows() -> list[KernelRow]:
    return [
        KernelRow(
            c.name, c.name, "fp8_prefill", "fp8_prefill", "float8e4m3fn", c.head_dim, VALUE_DIM, BLOCK_ROWS,
            64 * WAVES, c.lds_bytes, 2**25, 2**25, c.edges, _LONG[c.output],
            c.conversion,
        )
        for c in shipped()
    ]  # fmt: skip


def _bf16_rows() -> list[KernelRow]:
    shapes = [
        ("d64", 64, 64, 8, 32),
        ("d128", 128, 128, 8, 64),
        ("d192_v128", 192, 128, 8, 80),
        ("d256", 256, 256, 4, 128),
    ]
    return [
        KernelRow(
            f"bf16_prefill{suffix}", f"bf16_prefill_{name}{suffix}", f"bf16_prefill{suffix}", "bf16_prefill",
            "bfloat16", qk, v, 32 * (4 if suffix else waves), 64 * (4 if suffix else waves), lds * 1024, 2**25 - 1,
        )
        for suffix in ("", "_general")
        for name, qk, v, waves, lds in shapes
    ]  # fmt: skip


def _decode_rows() -> list[KernelRow]:
    lds = {(64, 64): 20992, (128, 128): 37376, (192, 128): 37376, (256, 256): 70144}
    rows = [
        KernelRow(
            "decode", f"decode_{'e4m3' if cache == 'float8e4m3fn' else 'bf16'}_{qk}_{v}_{rows}", "decode", "decode",
            cache, qk, v, rows, 256, size + 32 * (rows - 16),
        )
        for cache in ("bfloat16", "float8e4m3fn")
        for (qk, v), size in lds.items()
        for rows in (16, 32)
    ]  # fmt: skip
    return [*rows, KernelRow("decode", "decode_combine", "combine", "decode", "float", 0, 0, 1, 256, 4096)]


def _quantize_rows() -> list[KernelRow]:
    return [
        KernelRow("quantize", f"{family}_{short}", family, layout, dtype, 0, 0, 0, 256, lds)
        for dtype, short in _SHORT.items()
        for family, layout, lds in (
            ("quantize_amax", "quantize", 16),
            ("quantize_convert", "quantize", 16),
            ("hadamard", "hadamard", 0),
        )
    ]


def _convert_rows() -> list[KernelRow]:
    rows = [
        ("copy_rows_16", "copy_16", "float"),
        ("copy_rows_1", "copy_1", "float"),
        ("zero_rows_16", "zero_16", "float"),
        ("cast_f32_bf16", "cast", "float"),
        ("cast_f16_bf16", "cast", "float16"),
        ("widen_f16_f32", "widen", "float16"),
        ("mask_bytes_i32", "mask_bytes", "int32"),
        ("mask_bytes_i64", "mask_bytes", "int64"),
    ]
    made = [
        KernelRow("convert", kernel, family, "rows", reads, 0, 0, 0, 256, 0) for kernel, family, reads in rows
    ]
    return [*made, KernelRow("convert", "key_range", "key_range", "key_range", "float", 0, 0, 0, 256, 3076)]


KERNELS: tuple[KernelRow, ...] = (
    *_fp8_rows(),
    *_bf16_rows(),
    *_decode_rows(),
    *_quantize_rows(),
    *_convert_rows(),
)

# Types of the two products of a kernel, QK and PV. Decode of codes takes them as the bfloat16 numbers that they are.
PRODUCTS = {
    "fp8_prefill": ("float8e4m3fn", "float8e4m3fn"),
    "bf16_prefill": ("bfloat16", "bfloat16"),
    "bf16_prefill_general": ("bfloat16", "bfloat16"),
    "decode": ("bfloat16", "bfloat16"),
}

CPU = "or run this node on the CPU"


class Refusal(NamedTuple):
    """ "what: expected ..., got ...; advice"; {} and {most} stand for what the problem decides."""

    what: str
    expected: str
    advice: str

    def line(self, got: object, detail: str = "", most: int = 0) -> str:
        text = f"{self.what}: expected {self.expected}".replace("{}", detail).replace("{most}", str(most))
        return f"{text}, got {got}; {self.advice}"


REFUSALS = {
    "architecture": Refusal("architecture", ARCHITECTURE, "the kernels are compiled for it alone, run this node on the CPU"),
    "precision": Refusal("precision", "bf16 or fp8", f"no GPU kernel computes in fp32: set precision, {CPU}"),
    "quantised_prefill": Refusal(
        "precision", f"fp8 with float8e4m3fn inputs and more than {DECODE_QUERIES} query rows",
        f"set precision to fp8, {CPU}",
    ),
    "fp8_edges": Refusal("fp8_edges", "hilo or none", f"bf16 edge tiles have no GPU kernel: use hilo or none, {CPU}"),
    "softcap": Refusal(
        "softcap", "0 unless precision is bf16", f"use inputs that are not quantised and precision bf16, {CPU}"
    ),
    "bias": Refusal(
        "attn_bias", "none unless precision is bf16", f"use inputs that are not quantised and precision bf16, {CPU}"
    ),
    "head_dims": Refusal("head_dim/v_head_dim", "one of {}", f"pad the head dims, choose another precision, {CPU}"),
    "tensor_dims": Refusal("last dimension of x", "one of {}", "run this node on the CPU"),
    "mask_holes": Refusal(
        "key_mask", f"one run of visible keys per batch entry with precision fp8 and more than {DECODE_QUERIES} query rows",
        f"use inputs that are not quantised and precision bf16, {CPU}",
    ),
    "byte_rounding": Refusal(
        "byte_rounding", "{}", f"no FP8 kernel here is made for this device: set precision to bf16, {CPU}"
    ),
    "length": Refusal("{}", f"at most {MOST_LENGTH}", "split the batch or the sequence"),
    "quantized_rows": Refusal("{}", f"at most {MOST_QUANTIZED} to quantise", "split the sequence"),
    "alignment": Refusal("{} stride", f"multiples of {ALIGNMENT} bytes", "copy it into a contiguous tensor"),
    "row_stride": Refusal("{} stride", "at most {most} bytes", "copy it into a contiguous tensor"),
    "grid": Refusal("grid of {}", f"at most {'x'.join(map(str, MOST_GRID))} workgroups", "split the batch or the heads"),
}  # fmt: skip

REASONS = {
    "nothing": "no output rows: nothing to launch",
    "decode": "at most 16 query rows: decode reads the cache once per {rows} rows of a key head, in {splits} splits",
    "decode_exact": "; the result is the exact softmax of the FP8 inputs, without the rounded P of FP8 prefill",
    "fp8_prefill": "precision fp8: FP8 prefill, 256 rows per workgroup",
    "quantise": "; query, key and value are quantised first, per batch and head",
    "rotate": ", query and key rotated",
    "pad": "; head dims {from} are padded to {to} with zeros",
    "bf16_prefill": "precision bf16: BF16 prefill, {rows} rows per workgroup",
    "softcap": "; general kernel because of softcap",
    "bias": "; general kernel because of attn_bias",
    "scale": "; general kernel because scale is not within 1e-37 to 0.69",
    "quantise_op": "quantised in two passes, the first for the scales",
    "rotate_op": ", rotated in both",
    "hadamard_op": "rotated in one pass",
    "cast": "; query, key and value are cast to bfloat16 first",
    "unread": "; the visible range is taken from key_mask on the device, where holes give NaN and an error",
    "concatenate": "; past and new keys and values are put together first",
}


def markdown() -> str:
    """A row per kind of kernel, for docs/kernels.md."""
    lines = [
        "| kernels | code object | reads | writes | head dims | rows | LDS, KiB |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[KernelRow]] = {}
    for row in KERNELS:
        if row.qk_dim:
            groups.setdefault((row.family, row.reads), []).append(row)
    for (family, reads), rows in groups.items():
        cells = (
            f"`{family}`",
            "one each" if family == "fp8_prefill" else f"`{rows[0].code_object}`",
            reads,
            ", ".join(dict.fromkeys(r.writes for r in rows))
            if rows[0].writes
            else "bfloat16, float16, float",
            ", ".join(dict.fromkeys(f"{r.qk_dim}/{r.v_dim}" for r in rows)),
            ", ".join(map(str, dict.fromkeys(r.rows for r in rows))),
            ", ".join(f"{size / 1024:g}" for size in dict.fromkeys(r.lds_bytes for r in rows)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
