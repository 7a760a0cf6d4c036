"""The tables as a C++ header, for custom_ops/hip."""

from __future__ import annotations

import json
from collections.abc import Iterator

from zyfa_ort.kernels.select import table
from zyfa_ort.kernels.select.choice import BUFFERS
from zyfa_ort.kernels.select.layouts import KINDS, LAYOUTS, Layout
from zyfa_ort.kernels.select.table import KERNELS, REASONS, REFUSALS, KernelRow

CPP_DTYPES = {"float": "float32"}
NUMBERS = (
    "DECODE_QUERIES", "DECODE_WORKGROUPS", "DECODE_SPLIT_KEYS", "QUANTIZE_WORKGROUPS", "QUANTIZE_ELEMENTS",
    "COPY_BYTES", "UNIT_ELEMENTS", "SLICE_BYTES", "ALIGNMENT", "MOST_LENGTH", "MOST_QUANTIZED", "ANY_ROW",
)  # fmt: skip


def header() -> str:
    """The text of kernel_table.hpp."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "// The kernels, their limits and arguments: written by python -m zyfa_ort.kernels.select --emit-header."
    yield "#pragma once"
    yield ""
    yield from ("#include <cstddef>", "#include <cstdint>", "")
    for file in sorted({layout.header for layout in LAYOUTS.values()} - {""}):
        yield f'#include "{file}"'
    yield '#include "problem.hpp"'
    yield from ("", "namespace zyfa {", "")
    for layout in LAYOUTS.values():
        if not layout.header:
            yield from _struct(layout)
    yield from ("}  // namespace zyfa", "")
    for layout in LAYOUTS.values():
        yield from _assertions(layout)
    yield from ("", "namespace zyfa::hip {", "")
    yield f"inline constexpr const char* kArchitecture = {_text(table.ARCHITECTURE)};"
    for name in NUMBERS:
        yield f"inline constexpr int64_t {_constant('k', name)} = {getattr(table, name)};"
    dims = ", ".join(map(str, table.TENSOR_DIMS))
    yield f"inline constexpr int64_t kTensorDims[] = {{{dims}}};"
    padded = ", ".join(f"{{{', '.join(map(str, (*a, *b)))}}}" for a, b in table.PADDED_DIMS.items())
    yield f"inline constexpr int64_t kPaddedDims[][4] = {{{padded}}};  // qk, v of the problem, of the kernel"
    yield f"inline constexpr int64_t kMostGrid[3] = {{{', '.join(map(str, table.MOST_GRID))}}};"
    yield ""
    yield f"enum class Buffer {{ {', '.join(BUFFERS)} }};"
    yield f"inline constexpr const char* kBufferNames[] = {{{', '.join(map(_text, BUFFERS))}}};"
    yield f"enum class Family {{ {', '.join(dict.fromkeys(row.family for row in KERNELS))} }};"
    yield "enum class ByteRounding { unknown, nearest, truncate, other };"
    yield from ("", "// edges, writes and rounding are those of FP8 prefill.", "struct KernelRow {")
    yield "  const char *code_object, *kernel;"
    yield from ("  Family family;", "  DType reads;")
    yield "  int64_t qk_dim, v_dim, rows, work_items, lds_bytes, most_row_bytes, most_query_row_bytes, argument_bytes;"
    yield from ("  Fp8Edges edges;", "  DType writes;", "  ByteRounding rounding;", "};")
    yield "inline constexpr KernelRow kKernels[] = {"
    yield from (f"    {_row(row)}," for row in KERNELS)
    yield from ("};", "", "// {} and {most} stand for what the problem decides.")
    yield "struct Refusal {"
    yield from ("  const char *what, *expected, *advice;", "};")
    for name, refusal in REFUSALS.items():
        yield f"inline constexpr Refusal {_constant('kRefuse', name)}{{{', '.join(map(_text, refusal))}}};"
    for name, text in REASONS.items():
        yield f"inline constexpr const char* {_constant('kReason', name)} = {_text(text)};"
    yield from ("", "}  // namespace zyfa::hip")


def _struct(layout: Layout) -> Iterator[str]:
    yield f"struct {layout.cpp.rpartition('::')[2]} {{"
    for field in layout.fields:
        yield f"  {'const void*' if field.kind == 'pointer' else KINDS[field.kind][1]} {field.name};"
    yield from ("};", "")


def _assertions(layout: Layout) -> Iterator[str]:
    yield f"static_assert(sizeof({layout.cpp}) == {layout.size});"
    for field in layout.fields:
        yield f"static_assert(offsetof({layout.cpp}, {field.name}) == {field.offset});"
        yield f"static_assert(sizeof({layout.cpp}::{field.name}) == sizeof({KINDS[field.kind][1]}));"


def _row(row: KernelRow) -> str:
    numbers = (
        row.qk_dim, row.v_dim, row.rows, row.work_items, row.lds_bytes, row.most_row_bytes,
        row.most_query_row_bytes, LAYOUTS[row.layout].size,
    )  # fmt: skip
    return (
        f"{{{_text(row.code_object)}, {_text(row.kernel)}, Family::{row.family}, {_dtype(row.reads)}, "
        f"{', '.join(map(str, numbers))}, Fp8Edges::{row.edges or 'none'}, {_dtype(row.writes or 'float')}, "
        f"ByteRounding::{row.rounding or 'unknown'}}}"
    )


def _dtype(name: str) -> str:
    return f"DType::{CPP_DTYPES.get(name, name)}"


def _constant(prefix: str, name: str) -> str:
    return prefix + "".join(word.capitalize() for word in name.split("_"))


def _text(text: str) -> str:
    return json.dumps(text)
