"""Where every argument of every kernel lies in its argument block.

The structs are those of kernels/hip/*_arguments.hpp; that of the FP8 kernels comes from the generator. The header that
`--emit-header` writes asserts every offset when the C++ side is compiled.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from zyfa_ort.kernels.asm.fp8_config import ARGUMENTS

# Kind -> struct's format, C++ type. A pointer's value is filled in by the launch.
KINDS = {
    "pointer": ("Q", "unsigned long long"),
    "i64": ("q", "long long"),
    "u64": ("Q", "unsigned long long"),
    "i32": ("i", "int"),
    "u32": ("I", "unsigned"),
    "f32": ("f", "float"),
}


@dataclass(frozen=True)
class Field:
    name: str
    kind: str
    offset: int


@dataclass(frozen=True)
class Layout:
    """`cpp` is the struct's name, `header` the file it is in ("" when it is generated)."""

    name: str
    cpp: str
    header: str
    fields: tuple[Field, ...]
    size: int

    def offset(self, name: str) -> int:
        return next(field.offset for field in self.fields if field.name == name)

    def pack(self, values: Mapping[str, int | float]) -> bytes:
        """Pointers are 0. Raises KeyError for a name that is missing or too many."""
        expected = {field.name for field in self.fields if field.kind != "pointer"}
        if expected != set(values):
            raise KeyError(f"{self.name}: {sorted(expected ^ set(values))}")
        block = bytearray(self.size)
        for field in self.fields:
            if field.kind != "pointer":
                struct.pack_into(f"<{KINDS[field.kind][0]}", block, field.offset, values[field.name])
        return bytes(block)


def _layout(name: str, cpp: str, header: str, *groups: tuple[str, str]) -> Layout:
    fields, at = [], 0
    for kind, names in groups:
        size = struct.calcsize(KINDS[kind][0])
        for field in names.split():
            at += -at % size
            fields.append(Field(field, kind, at))
            at += size
    widest = max(struct.calcsize(KINDS[field.kind][0]) for field in fields)
    return Layout(name, cpp, header, tuple(fields), at + -at % widest)


def _fp8_kind(name: str, size: int, pointer: bool) -> str:
    if pointer:
        return "pointer"
    if size == 8:
        return "i64"
    return {"scale": "f32", "diagonal": "i32", "window_left": "i32"}.get(name, "u32")


LAYOUTS = {
    layout.name: layout
    for layout in (
        _layout(
            "fp8_prefill", "zyfa::Fp8PrefillArguments", "",
            *((_fp8_kind(a.name, a.bytes, a.pointer), a.name) for a in ARGUMENTS),
        ),
        _layout(
            "bf16_prefill", "zyfa::Bf16PrefillArguments", "prefill_arguments.hpp",
            ("pointer", "query key value output lse key_range sinks key_mask bias"),
            ("i64", "q_batch q_head k_batch k_head v_batch v_head o_batch o_head lse_batch lse_head"),
            ("i64", "mask_batch bias_batch bias_head bias_row"),
            ("u32", "q_row k_row v_row o_row bias_column bias_is_float queries keys group_reciprocal causal"),
            ("i32", "diagonal window_left"),
            ("f32", "scale softcap"),
            ("u32", "output_type reserved"),
        ),
        _layout(
            "decode", "zyfa::kernels::DecodeArguments", "decode_arguments.hpp",
            ("pointer", "q k v out lse q_scale k_scale v_scale sinks key_range key_mask partial_out partial_sums"),
            ("i64", "q_batch k_batch k_head v_batch v_head out_batch out_head mask_batch"),
            ("u32", "q_head q_row k_row v_row out_row"),
            ("u32", "q_scale_batch q_scale_head k_scale_batch k_scale_head v_scale_batch v_scale_head"),
            ("u32", "heads kv_heads queries keys"),
            ("i32", "diagonal"),
            ("u32", "causal"),
            ("i32", "window_left"),
            ("f32", "scale"),
            ("u32", "v_dim splits q_type out_type"),
        ),
        _layout(
            "quantize", "zyfa::kernels::QuantizeArguments", "quantize_arguments.hpp",
            ("pointer", "x codes scale partial mask"),
            ("i64", "x_batch x_head codes_batch codes_head mask_batch"),
            ("u32", "x_row codes_row mask_bytes rows heads batch dim rotation row_begin row_end granularity blocks"),
        ),
        _layout(
            "hadamard", "zyfa::kernels::HadamardArguments", "quantize_arguments.hpp",
            ("pointer", "x y"),
            ("u64", "count"),
            ("u32", "rotation blocks"),
        ),
        _layout(
            "rows", "zyfa::kernels::RowsArguments", "convert_arguments.hpp",
            ("pointer", "source target"),
            ("i64", "source_batch source_head source_row target_batch target_head target_row"),
            ("u32", "rows units blocks reserved"),
        ),
        _layout(
            "key_range", "zyfa::kernels::KeyRangeArguments", "convert_arguments.hpp",
            ("pointer", "mask range q_scale guarded status"),
            ("i64", "mask_batch"),
            ("u32", "mask_bytes keys heads q_scale_batch q_scale_head reserved"),
        ),
    )
}  # fmt: skip
