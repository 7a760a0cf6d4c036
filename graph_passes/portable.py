"""Function bodies for our operator: what it computes, written in standard operators into the model.

A runtime without the library inlines the body; with the library the kernel is used and the body ignored. A model has one
body per operator name (ONNX Runtime before 1.27 takes any body where several overloads are told apart by name), so one kind of
attention is chosen, the most frequent; numbers (scale, softcap, window, causal or not) are attributes of each node, while
layout, type, head counts and the inputs that are present belong to the kind. Sites of another kind are left as they are.

The body works in float32 whatever the precision attribute says, and holds the scores of all keys at once: it is there to be
right anywhere, not to be fast.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import onnx.parser
import onnx_ir as ir

from .errors import GraphPassError
from .fuse_attention import used_presents
from .fusion import Fusion
from .layouts import Form
from .schema import ATTRIBUTES, DOMAIN, INPUTS, OUTPUTS, PREFILL_ATTENTION, Alignment

OLDEST_OPSET: Final = 12  # Constant with value_int
OLDEST_IR: Final = 8  # functions in a model
OTHER_KIND: Final = (
    "another kind of attention than the one whose function body the model carries (--portable)"
)


@dataclass(frozen=True)
class Kind:
    """What all nodes that share a body have in common. `inputs` are the names of those present, `outputs` a number: a
    body has exactly the outputs of its node."""

    form: Form
    dtype: ir.DataType
    heads: int
    kv_heads: int
    alignment: Alignment
    inputs: frozenset[str]
    outputs: int = 1


def kind_of(fusion: Fusion) -> Kind:
    """The kind of the node that a fusion will make."""
    present = {"query", "key", "value"}
    present |= {"past_key", "past_value"} if fusion.has_past else set()
    present |= {"key_mask"} if fusion.masking.key_masks else set()
    present |= {"attn_bias"} if fusion.masking.biases else set()
    present |= {"sinks"} if fusion.sinks is not None else set()
    query = fusion.query
    alignment = fusion.masking.structure.alignment
    return Kind(
        query.form,
        query.dtype,
        query.heads,
        fusion.kv_heads,
        alignment,
        frozenset(present),
        1 + len(used_presents(fusion)),
    )


def common_kind(fusions: Sequence[Fusion]) -> Kind | None:
    """The most frequent kind, the first of several."""
    counts = Counter(kind_of(one) for one in fusions)
    return counts.most_common(1)[0][0] if counts else None


def check(model: ir.Model) -> None:
    """Refuse a model whose body could not be written. Raises GraphPassError."""
    opset = model.opset_imports.get("", 0)
    if model.ir_version < OLDEST_IR:
        raise GraphPassError(
            f"--portable: expected a model of IR version {OLDEST_IR} or later, which can hold functions, "
            f"got {model.ir_version}"
        )
    if opset < OLDEST_OPSET:
        raise GraphPassError(
            f"--portable: expected a model of opset {OLDEST_OPSET} or later, got {opset}; convert the model"
        )
    ours = [node for graph in model.graphs() for node in graph if node.domain == DOMAIN]
    if ours or any(domain == DOMAIN for domain, _, _ in model.functions):
        raise GraphPassError(f"--portable: the model already holds operators of {DOMAIN}; fuse the original")


def function(kind: Kind, opset: int) -> ir.Function:
    """The body of one kind, for a model of `opset`."""
    last = max(INPUTS.index(name) for name in kind.inputs)
    body = _Body(kind, opset)
    text = (
        f'<domain: "{DOMAIN}", opset_import: ["" : {opset}]>\n'
        f"{PREFILL_ATTENTION} <{', '.join(ATTRIBUTES)}> ({', '.join(INPUTS[: last + 1])}) "
        f"=> ({', '.join(OUTPUTS[: kind.outputs])})\n" + "{\n" + "\n".join(body.written()) + "\n}"
    )
    return ir.serde.deserialize_function(onnx.parser.parse_function(text))


class _Body:
    """Lines of ONNX's text format. Every method returns the name of the value it makes."""

    def __init__(self, kind: Kind, opset: int) -> None:
        self.kind, self.opset = kind, opset
        self.lines: list[str] = []
        self.constants: dict[tuple[str, str], str] = {}

    def written(self) -> list[str]:
        query, key, value = self.operands()
        self.output(*self.softmax(self.scores(query, key), self.visible(query, key)), value)
        return self.lines

    def op(self, op_type: str, *inputs: str, into: str = "", **attributes: int | str | list[int]) -> str:
        name = into or f"v{len(self.lines)}"
        given = ", ".join(f"{key} = {value}" for key, value in attributes.items())
        self.lines.append(f"  {name} = {op_type} <{given}> ({', '.join(inputs)})".replace(" <>", ""))
        return name

    def number(self, number: int | float | list[int]) -> str:
        """An int64 or float scalar, or an int64 vector."""
        kind = "ints" if isinstance(number, list) else "int" if isinstance(number, int) else "float"
        if (kind, str(number)) not in self.constants:
            self.constants[kind, str(number)] = f"v{len(self.lines)}"
            self.lines.append(f"  v{len(self.lines)} = Constant <value_{kind} = {number}> ()")
        return self.constants[kind, str(number)]

    def attribute(self, name: str) -> str:
        """The number of an attribute of the node."""
        kind = ATTRIBUTES[name].kind
        self.lines.append(f"  v{len(self.lines)} = Constant <value_{kind}: {kind} = @{name}> ()")
        return f"v{len(self.lines) - 1}"

    def length(self, value: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", value), self.number(axis), axis=0)

    def reduced(self, op_type: str, value: str) -> str:
        """Along the last axis, which stays."""
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.op(op_type, value, self.number([-1]), keepdims=1)
        return self.op(op_type, value, axes=[-1], keepdims=1)

    def unsqueezed(self, value: str, *axes: int) -> str:
        if self.opset >= 13:
            return self.op("Unsqueeze", value, self.number(list(axes)))
        return self.op("Unsqueeze", value, axes=list(axes))

    def vector(self, *parts: str | int) -> str:
        rows = [self.number([one]) if isinstance(one, int) else self.unsqueezed(one, 0) for one in parts]
        return self.op("Concat", *rows, axis=0)

    def operands(self) -> tuple[str, str, str]:
        """(B,Hq,S,D) in float; on the way present_key and present_value, (B,Hkv,past + new,D)."""
        kind = self.kind
        by_head = [
            self.by_head(name, heads)
            for name, heads in (("query", kind.heads), ("key", kind.kv_heads), ("value", kind.kv_heads))
        ]
        groups = kind.heads // kind.kv_heads
        of_query_head = self.number([head // groups for head in range(kind.heads)])
        found = [self.op("Cast", by_head[0], to=1)]
        for name, new in zip(("key", "value"), by_head[1:], strict=True):
            if "past_key" in kind.inputs:
                whole = self.op("Concat", f"past_{name}", new, into=f"present_{name}", axis=2)
            else:
                whole = self.op("Identity", new, into=f"present_{name}")
            found.append(self.op("Gather", self.op("Cast", whole, to=1), of_query_head, axis=1))
        return found[0], found[1], found[2]

    def by_head(self, name: str, heads: int) -> str:
        """An input as (B,heads,S,D)."""
        if self.kind.form.packed:
            width = self.op("Div", self.length(name, 2), self.number(heads))
            name = self.op("Reshape", name, self.vector(0, 0, heads, width))
        return self.op("Transpose", name, perm=[0, 2, 1, 3]) if self.kind.form.layout == "BSHD" else name

    def scores(self, query: str, key: str) -> str:
        """After scale, softcap and bias."""
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.attribute("scale"))
        cap, zero = self.attribute("softcap"), self.number(0.0)
        is_capped = self.op("Greater", cap, zero)
        divisor = self.op("Where", is_capped, cap, self.number(1.0))
        capped = self.op("Mul", self.op("Tanh", self.op("Div", scores, divisor)), divisor)
        scores = self.op("Where", is_capped, capped, scores)
        if "attn_bias" in self.kind.inputs:
            scores = self.op("Add", scores, self.op("Cast", "attn_bias", to=1))
        return scores

    def visible(self, query: str, key: str) -> str:
        """(S,keys) or (B,1,S,keys), by position and key mask."""
        rows, keys = self.length(query, 2), self.length(key, 2)
        row, column = (self.op("Range", self.number(0), end, self.number(1)) for end in (rows, keys))
        if self.kind.alignment == "bottom_right":
            row = self.op("Add", row, self.op("Sub", keys, rows))
        behind = self.op("Sub", self.unsqueezed(row, 1), column)
        zero, window = self.number(0), self.attribute("window_left")
        may_look_ahead = self.op("Equal", self.attribute("is_causal"), zero)
        has_no_window = self.op("Less", window, zero)
        seen = self.op("Or", self.op("Not", self.op("Less", behind, zero)), may_look_ahead)
        near = self.op("Or", self.op("Not", self.op("Greater", behind, window)), has_no_window)
        visible = self.op("And", seen, near)
        if "key_mask" in self.kind.inputs:
            mask = self.unsqueezed(self.op("Cast", "key_mask", to=9), 1, 2)
            visible = self.op("And", visible, mask)
        return visible

    def softmax(self, scores: str, visible: str) -> tuple[str, str, str]:
        """Exponentials, their sum with the sinks, and which keys a row sees."""
        hidden = self.op("Neg", self.op("Div", self.number(1.0), self.number(0.0)))
        scores = self.op("Where", visible, scores, hidden)
        seen = self.op("Not", self.op("Equal", scores, hidden))
        sink = (
            self.unsqueezed(self.op("Cast", "sinks", to=1), 1, 2) if "sinks" in self.kind.inputs else hidden
        )
        # One more column, so that the maximum exists when there are no keys.
        lengths = [self.length(scores, axis) for axis in range(3)]
        column = self.op("Expand", sink, self.vector(*lengths, 1))
        largest = self.reduced("ReduceMax", self.op("Concat", scores, column, axis=-1))
        largest = self.op("Where", self.op("Equal", largest, hidden), self.number(0.0), largest)
        weights = self.op("Exp", self.op("Sub", scores, largest))
        total = self.op(
            "Add", self.reduced("ReduceSum", weights), self.op("Exp", self.op("Sub", column, largest))
        )
        zero = self.number(0.0)
        total = self.op("Where", self.op("Equal", total, zero), self.number(1.0), total)
        return weights, total, seen

    def output(self, weights: str, total: str, seen: str, value: str) -> None:
        """Values that a row does not see are left out of its sum even if they are NaN or infinite."""
        kind, zero = self.kind, self.number(0.0)
        # Without IsNaN and IsInf, which the MIGraphX provider of ONNX Runtime 1.27 does not take.
        is_odd = self.op("Not", self.op("Less", self.op("Abs", value), self.number(math.inf)))
        plain = self.op("MatMul", weights, self.op("Where", is_odd, zero, value))
        sees_odd = self.op("MatMul", self.op("Cast", seen, to=1), self.op("Cast", is_odd, to=1))
        sums = self.op("Where", self.op("Greater", sees_odd, zero), self.op("MatMul", weights, value), plain)
        result = self.op("Div", sums, total)
        if kind.form.layout == "BSHD":
            result = self.op("Transpose", result, perm=[0, 2, 1, 3])
        if kind.form.packed:
            width = self.op("Mul", self.length(result, 3), self.number(kind.heads))
            result = self.op("Reshape", result, self.vector(0, 0, width))
        self.op("Cast", result, into="output", to=int(kind.dtype))
