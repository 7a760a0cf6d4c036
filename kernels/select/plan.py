"""The launches of a problem: past and new put together, inputs cast or quantised, attention, the sum of decode's parts."""

from __future__ import annotations

from dataclasses import replace

from zyfa_ort.kernels.select.arguments import (
    Places,
    bf16_arguments,
    decode_arguments,
    fp8_arguments,
    key_range_arguments,
)
from zyfa_ort.kernels.select.checks import (
    check_attributes,
    check_sizes,
    check_strides,
    is_decode,
    is_padded,
    kernel_for,
    refuse,
    size_of,
)
from zyfa_ort.kernels.select.choice import At, Choice
from zyfa_ort.kernels.select.problem import Problem, Strides
from zyfa_ort.kernels.select.steps import Steps, ceil_div, kernel_of
from zyfa_ort.kernels.select.table import (
    ANY_ROW,
    DECODE_SPLIT_KEYS,
    DECODE_WORKGROUPS,
    REASONS,
    KernelRow,
)
from zyfa_ort.kernels.select.tensors import Bytes, Sizes, Tensor, Tensors


def decode_splits(visible: int, tiles: int, batch_heads: int) -> int:
    """By shape alone: the number is part of the result's bits."""
    return max(1, min(DECODE_WORKGROUPS // (tiles * batch_heads), ceil_div(visible, DECODE_SPLIT_KEYS)))


def select(p: Problem) -> Choice:
    """Which kernels run the problem, and how they are launched. Raises NoKernelError."""
    return _Plan(p).choice()


class _Plan:
    def __init__(self, problem: Problem) -> None:
        self.p = problem
        self.steps = Steps()
        self.why = ""

    def choice(self) -> Choice:
        p = self.p
        check_attributes(p)
        rows = p.batch * p.q_heads * p.q_len
        if rows == 0 or (p.v_dim == 0 and not p.lse):
            self.why = REASONS["nothing"]
            check_sizes(p, False)
            self._keys_and_values()
            return self._done()
        row = kernel_for(p)
        quantise = row.reads == "float8e4m3fn" and p.dtype != "float8e4m3fn"
        check_sizes(p, quantise)
        tensors = self._inputs()
        if row.reads == "float8e4m3fn" and (quantise or is_padded(p, row)):
            tensors = self._coded(row, tensors, quantise)
        elif row.reads == "bfloat16" and p.dtype != "bfloat16":
            tensors = self._cast(tensors)
        output = tensors.output
        if is_padded(p, row):
            wide = self._room((p.batch, p.q_heads, p.q_len, p.v_dim), row.v_dim, p.out_dtype)
            tensors = replace(tensors, output=wide)
        for name, tensor, most in (
            ("query", tensors.query, row.most_query_row_bytes),
            ("key", tensors.key, row.most_row_bytes),
            ("value", tensors.value, row.most_row_bytes),
            ("output", tensors.output, row.most_query_row_bytes),
        ):
            check_strides(name, tensor.strides, most)
        tensors = self._bias(self._masked(row, tensors))
        if is_decode(p):
            self._decode(row, tensors)
        else:
            self._prefill(row, tensors)
        if is_padded(p, row):
            counts, row_bytes = (p.batch, p.q_heads, p.q_len), p.v_dim * size_of(p.out_dtype)
            self.steps.copy(tensors.output, (output.at, output.strides), counts, row_bytes)
        self.why += self._tail(row, quantise)
        return self._done()

    def _done(self) -> Choice:
        return self.steps.choice(self.why)

    def _tail(self, row: KernelRow, quantise: bool) -> str:
        text = REASONS["quantise"] if quantise else ""
        if quantise and self.p.rotation == "hadamard":
            text += REASONS["rotate"]
        if is_padded(self.p, row):
            dims = f"{self.p.qk_dim}/{self.p.v_dim}", f"{row.qk_dim}/{row.v_dim}"
            text += REASONS["pad"].replace("{from}", dims[0]).replace("{to}", dims[1])
        if row.reads == "bfloat16" and self.p.dtype != "bfloat16":
            text += REASONS["cast"]
        if row.family == "fp8_prefill" and self.p.key_mask == "unread":
            text += REASONS["unread"]
        return text + (REASONS["concatenate"] if self.p.past_len else "")

    # ---- tensors ----

    def _inputs(self) -> Tensors:
        p = self.p
        key, value = self._keys_and_values()
        return Tensors(
            Tensor(At("query"), self._bytes(p.query, p.dtype), p.dtype),
            key,
            value,
            Tensor(At("output"), self._bytes(p.output, p.out_dtype), p.out_dtype),
            {name: (At(name) if p.dtype == "float8e4m3fn" else None) for name in ("q_scale", "k_scale", "v_scale")},
            {"q_scale": p.q_scale, "k_scale": p.k_scale, "v_scale": p.v_scale},
        )  # fmt: skip

    def _bytes(self, strides: Strides, dtype: str) -> Bytes:
        size = size_of(dtype)
        return strides.batch * size, strides.head * size, strides.row * size

    def _keys_and_values(self) -> tuple[Tensor, Tensor]:
        """The whole of past and new where one tensor has it: the input, present_*, or a part of the workspace."""
        p = self.p
        key = self._whole("key", p.key, p.qk_dim, p.present_key)
        return key, self._whole("value", p.value, p.v_dim, p.present_value)

    def _whole(self, name: str, strides: Strides, dim: int, present: bool) -> Tensor:
        p = self.p
        new = Tensor(At(name), self._bytes(strides, p.dtype), p.dtype)
        if not p.past_len and not present:
            return new
        row = dim * size_of(p.dtype)
        head, past_head = p.kv_len * row, p.past_len * row
        place = At(f"present_{name}") if present else self.steps.workspace.take(p.batch * p.kv_heads * head)
        whole = Tensor(place, (p.kv_heads * head, head, row), p.dtype)
        past = Tensor(At(f"past_{name}"), (p.kv_heads * past_head, past_head, row), p.dtype)
        for part, rows, at in ((past, p.past_len, place), (new, p.new_len, place + past_head)):
            self.steps.copy(part, (at, whole.strides), (p.batch, p.kv_heads, rows), row)
        return whole if p.past_len else new

    # ---- what kernels read instead of the inputs ----

    def _cast(self, t: Tensors) -> Tensors:
        p = self.p
        keys = (p.batch, p.kv_heads, p.kv_len)
        for name, tensor in (("query", t.query), ("key", t.key), ("value", t.value)):
            check_strides(name, tensor.strides, ANY_ROW)
        return replace(
            t,
            query=self.steps.cast(t.query, (p.batch, p.q_heads, p.q_len, p.qk_dim)),
            key=self.steps.cast(t.key, (*keys, p.qk_dim)),
            value=self.steps.cast(t.value, (*keys, p.v_dim)),
        )

    def _masked(self, row: KernelRow, t: Tensors) -> Tensors:
        p = self.p
        if p.key_mask == "none":
            return t
        if p.key_mask == "range":
            return replace(t, key_range=At("key_range"))
        if row.family == "fp8_prefill":
            return self._ranged(t)
        if p.mask_dtype == "bool":
            return replace(t, key_mask=At("key_mask"))
        made = self.steps.workspace.take(p.batch * p.kv_len)
        source = At("key_mask"), (p.kv_len * size_of(p.mask_dtype), 0, 0)
        kernel = kernel_of("mask_bytes", p.mask_dtype)
        self.steps.rows(kernel, source, (made, (p.kv_len, 0, 0)), (p.batch, 1, 1), p.kv_len)
        return replace(t, key_mask=made)

    def _ranged(self, t: Tensors) -> Tensors:
        p = self.p
        found = self.steps.workspace.take(8 * p.batch)
        guarded = self.steps.workspace.take(4 * p.batch * p.q_heads)
        places: Places = {
            "mask": At("key_mask"), "range": found, "q_scale": t.scales["q_scale"], "guarded": guarded, "status": At("status"),
        }  # fmt: skip
        values = key_range_arguments(p, t.scale_strides["q_scale"])
        self.steps.launch(kernel_of("key_range", "float"), (1, 1, p.batch), values, places)
        return replace(
            t,
            key_range=found,
            scales=t.scales | {"q_scale": guarded},
            scale_strides=t.scale_strides | {"q_scale": Strides(p.q_heads, 1)},
        )

    def _bias(self, t: Tensors) -> Tensors:
        p = self.p
        if p.bias is None:
            return t
        if p.dtype != "float16":
            return replace(t, bias=At("bias"), bias_dtype=p.dtype)
        b = p.bias
        batch, heads, rows, columns = (
            size if step else min(size, 1)
            for size, step in (
                (p.batch, b.batch), (p.q_heads, b.head), (p.q_len, b.row), (p.kv_len, b.column),
            )
        )  # fmt: skip
        made = self.steps.workspace.take(4 * batch * heads * rows * columns)
        source, target = ((size * b.batch, size * b.head, size * b.row) for size in (2, 4))
        kernel = kernel_of("widen", p.dtype)
        self.steps.rows(kernel, (At("bias"), source), (made, target), (batch, heads, rows), columns)
        return replace(t, bias=made, bias_dtype="float")

    # ---- codes ----

    def _coded(self, row: KernelRow, t: Tensors, quantise: bool) -> Tensors:
        """Codes in rows as long as the kernel reads them, made here or copied, zeros behind them."""
        p = self.p
        queries, keys = (p.batch, p.q_heads, p.q_len), (p.batch, p.kv_heads, p.kv_len)
        sizes: dict[str, Sizes] = {
            "query": (*queries, p.qk_dim), "key": (*keys, p.qk_dim), "value": (*keys, p.v_dim),
        }  # fmt: skip
        dims = {"query": row.qk_dim, "key": row.qk_dim, "value": row.v_dim}
        inputs = {"query": t.query, "key": t.key, "value": t.value}
        first = self.steps.workspace.size
        codes = {name: self._room(sizes[name], dims[name], "float8e4m3fn") for name in sizes}
        coded = replace(t, query=codes["query"], key=codes["key"], value=codes["value"])
        for name, tensor in inputs.items():
            check_strides(name, tensor.strides, ANY_ROW)
        if is_padded(p, row):
            self.steps.zero(At("workspace", first), self.steps.workspace.size - first)
        if not quantise:
            for name, x in inputs.items():
                target = codes[name].at, codes[name].strides
                self.steps.copy(x, target, sizes[name][:3], sizes[name][3])
            return coded
        seen = p.visible_keys_of_any_row()
        masked = p.key_mask != "none"
        scales: dict[str, At | None] = {
            "q_scale": self._quantise(t.query, codes["query"], sizes["query"], (0, p.q_len), False, True),
            "k_scale": self._quantise(t.key, codes["key"], sizes["key"], seen, masked, True),
            "v_scale": self._quantise(t.value, codes["value"], sizes["value"], seen, masked, False),
        }
        strides = {name: Strides(p.q_heads if name == "q_scale" else p.kv_heads, 1) for name in scales}
        return replace(coded, scales=scales, scale_strides=strides)

    def _room(self, sizes: Sizes, dim: int, dtype: str) -> Tensor:
        batch, heads, rows, _ = sizes
        step = dim * size_of(dtype)
        place = self.steps.workspace.take(batch * heads * rows * step)
        return Tensor(place, (heads * rows * step, rows * step, step), dtype)

    def _quantise(
        self,
        x: Tensor,
        codes: Tensor,
        sizes: Sizes,
        counted: tuple[int, int],
        masked: bool,
        rotatable: bool,
    ) -> At:
        """Where the scales are."""
        p = self.p
        batch, heads, _, _ = sizes
        scale = self.steps.workspace.take(4 * batch * heads)
        rotated = rotatable and p.rotation == "hadamard"
        mask = (p.kv_len * size_of(p.mask_dtype), size_of(p.mask_dtype)) if masked else None
        self.steps.quantise(x, codes, scale, sizes, rotated, "batch_head", counted, mask)
        return scale

    # ---- attention ----

    def _prefill(self, row: KernelRow, t: Tensors) -> None:
        p = self.p
        blocks = ceil_div(p.q_len, row.rows)
        self.why += REASONS[row.family.removesuffix("_general")].replace("{rows}", str(row.rows))
        if row.family == "fp8_prefill":
            self.steps.launch(row, (p.q_heads, blocks, p.batch), *fp8_arguments(p, t))
            return
        if row.family.endswith("_general"):
            self.why += REASONS["softcap" if p.softcap != 0 else "bias" if p.bias is not None else "scale"]
        values, places = bf16_arguments(p, t)
        if values["bias_row"] > 2**26 - 1:
            refuse("row_stride", values["bias_row"], "attn_bias row", 2**26 - 1)
        self.steps.launch(row, (blocks, p.q_heads, p.batch), values, places)

    def _decode(self, row: KernelRow, t: Tensors) -> None:
        p = self.p
        tiles = ceil_div(p.group_size * p.q_len, row.rows)
        begin, end = p.visible_keys_of_any_row()
        splits = decode_splits(max(end - begin, 0), tiles, p.batch * p.kv_heads)
        parts = p.batch * p.q_heads * p.q_len * splits
        places: Places = {
            "partial_out": self.steps.workspace.take(4 * parts * p.v_dim),
            "partial_sums": self.steps.workspace.take(8 * parts),
        }
        if t.query.strides[1] > ANY_ROW:
            refuse("row_stride", t.query.strides[1], "query head", ANY_ROW)
        values, inputs = decode_arguments(p, t, splits)
        self.steps.launch(row, (splits, tiles, p.batch * p.kv_heads), values, inputs | places)
        self.steps.launch(
            kernel_of("combine", "float"), (p.q_heads, p.q_len, p.batch), values, inputs | places
        )
        self.why += REASONS["decode"].replace("{rows}", str(row.rows)).replace("{splits}", str(splits))
        if row.reads == "float8e4m3fn":
            self.why += REASONS["decode_exact"]
