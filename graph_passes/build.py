"""Small nodes around a fused one: casts, reshapes and masks in the form the operator takes, written for the graph's own
opset, and shared by all sites that need the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import onnx_ir as ir

from .masks import KeyMask
from .sites import Step
from .values import Array

AXES_AS_INPUT: Final = {"Unsqueeze": 13, "Squeeze": 13, "ReduceMean": 18}  # operator -> opset
# A mask step, the type of its tensor, and the head count when that tensor is (B*H, queries, keys) (else 0).
Term = tuple[Step, ir.DataType | None, int]


class Names:
    """Names that no value or node of the model has yet."""

    def __init__(self, model: ir.Model) -> None:
        self.taken: set[str] = set()
        for graph in model.graphs():
            for value in (*graph.inputs, *graph.initializers.values()):
                self.taken.add(value.name or "")
            for node in graph:
                self.taken.add(node.name or "")
                self.taken.update(output.name or "" for output in node.outputs)

    def new(self, wanted: str) -> str:
        """`wanted`, or `wanted` with the first number that makes it unique."""
        name, number = wanted, 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name


class Builder:
    """Inserts nodes before a given node of a graph."""

    def __init__(self, names: Names, opset: int) -> None:
        self.names = names
        self.opset = opset
        self._shared: dict[tuple[object, ...], ir.Value] = {}
        self._moved: dict[ir.Value, ir.Value] = {}

    def move(self, old: ir.Value, new: ir.Value) -> None:
        """Note that `new` has taken the place of `old`, which decisions made earlier may still name."""
        self._moved[old] = new

    def now(self, value: ir.Value) -> ir.Value:
        """What stands for `value` in the graph as it is now."""
        while value in self._moved:
            value = self._moved[value]
        return value

    def node(
        self,
        before: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        dtype: ir.DataType | None,
        scope: str,
        domain: str = "",
        **attributes: int | float | str | tuple[int, ...],
    ) -> ir.Value:
        """A one-output node, of the standard unless another domain is given."""
        return self.nodes(before, op_type, inputs, [dtype], scope, domain, **attributes)[0]

    def nodes(
        self,
        before: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        dtypes: Sequence[ir.DataType | None],
        scope: str,
        domain: str = "",
        **attributes: int | float | str | tuple[int, ...],
    ) -> Sequence[ir.Value]:
        """The outputs of a node with one output per type."""
        graph = before.graph
        assert isinstance(graph, ir.Graph)
        attrs = [ir.convenience.convert_attribute(name, given) for name, given in attributes.items()]
        name = self.names.new(f"{scope}{op_type}")
        node = ir.Node(domain, op_type, inputs, attrs, num_outputs=len(dtypes), name=name)
        for output, dtype in zip(node.outputs, dtypes, strict=True):
            output.name = self.names.new(f"{scope}{op_type}_output")
            output.type = None if dtype is None else ir.TensorType(dtype)
        graph.insert_before(before, node)
        return node.outputs

    def constant(self, before: ir.Node, data: Array, scope: str) -> ir.Value:
        graph = before.graph
        assert isinstance(graph, ir.Graph)
        held = ir.tensor(data)
        node = ir.Node(
            "", "Constant", [], [ir.AttrTensor("value", held)], name=self.names.new(f"{scope}Constant")
        )
        node.outputs[0].name = self.names.new(f"{scope}Constant_output")
        node.outputs[0].type = ir.TensorType(held.dtype)
        node.outputs[0].shape = ir.Shape(data.shape)
        graph.insert_before(before, node)
        return node.outputs[0]

    def cast(self, before: ir.Node, value: ir.Value, dtype: ir.DataType, scope: str) -> ir.Value:
        return self.node(before, "Cast", [value], dtype, scope, to=int(dtype))

    def split(
        self, before: ir.Node, value: ir.Value, lengths: Sequence[int], axis: int, scope: str
    ) -> Sequence[ir.Value]:
        """Consecutive parts of `value` along `axis`."""
        dtypes = [value.dtype] * len(lengths)
        if self.opset < 13:
            return self.nodes(before, "Split", [value], dtypes, scope, axis=axis, split=tuple(lengths))
        parts = self.constant(before, np.asarray(lengths, np.int64), scope)
        return self.nodes(before, "Split", [value, parts], dtypes, scope, axis=axis)

    def reshape(self, before: ir.Node, value: ir.Value, shape: Sequence[int], scope: str) -> ir.Value:
        """Zeros in `shape` copy the input's length, -1 takes the rest."""
        target = self.constant(before, np.asarray(shape, np.int64), scope)
        return self.node(before, "Reshape", [value, target], value.dtype, scope)

    def _over(self, before: ir.Node, op_type: str, value: ir.Value, axis: int, scope: str) -> ir.Value:
        """A node over one axis, which moved from an attribute to an input."""
        if self.opset < AXES_AS_INPUT[op_type]:
            return self.node(before, op_type, [value], value.dtype, scope, axes=(axis,))
        axes = self.constant(before, np.asarray([axis], np.int64), scope)
        return self.node(before, op_type, [value, axes], value.dtype, scope)

    def unsqueeze(self, before: ir.Node, value: ir.Value, axis: int, scope: str) -> ir.Value:
        return self._over(before, "Unsqueeze", value, axis, scope)

    def mean(self, before: ir.Node, value: ir.Value, axis: int, scope: str) -> ir.Value:
        """Along `axis`, which stays with length 1."""
        return self._over(before, "ReduceMean", value, axis, scope)

    def squeeze(self, before: ir.Node, value: ir.Value, axis: int, scope: str) -> ir.Value:
        return self._over(before, "Squeeze", value, axis, scope)

    def key_mask(
        self,
        before: ir.Node,
        masks: Sequence[KeyMask],
        ranks: Sequence[int],
        dtypes: Sequence[ir.DataType],
        keys: Sequence[tuple[ir.Value, int]],
        scope: str,
    ) -> ir.Value:
        """One (B, keys) bool or integer value: nonzero where all `masks` let the key through.

        keys: values and their axes whose lengths sum up to the keys; masks that may be longer are cut to it.
        """
        graph = before.graph
        cut_to = tuple(keys) if any(mask.cut or mask.counts for mask in masks) else ()
        return self.shared(
            ("key_mask", graph, tuple(masks), cut_to),
            lambda: self._key_mask(before, masks, ranks, dtypes, cut_to, scope),
        )

    def _key_mask(
        self,
        before: ir.Node,
        masks: Sequence[KeyMask],
        ranks: Sequence[int],
        dtypes: Sequence[ir.DataType],
        keys: Sequence[tuple[ir.Value, int]],
        scope: str,
    ) -> ir.Value:
        whole: ir.Value | None = None
        for mask, rank, dtype in zip(masks, ranks, dtypes, strict=True):
            value = self.now(mask.value)
            if mask.counts:
                value, rank, dtype = self._first_keys(before, value, keys, scope), 2, ir.DataType.BOOL
            if (mask.ones or mask.positive) and dtype != ir.DataType.BOOL:
                number = self.constant(before, np.asarray(int(mask.ones), dtype.numpy()), scope)
                compare = "Equal" if mask.ones else "Greater"
                value = self.node(before, compare, [value, number], ir.DataType.BOOL, scope)
                dtype = ir.DataType.BOOL
            plain = dtype in (ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64) and not mask.inverted
            if dtype != ir.DataType.BOOL and not (plain and len(masks) == 1):
                value = self.cast(before, value, ir.DataType.BOOL, scope)
            if mask.inverted:
                value = self.node(before, "Not", [value], ir.DataType.BOOL, scope)
            if rank != 2:
                value = self.reshape(before, value, (0, -1), scope)
            if mask.cut:
                value = self._cut(before, value, keys, scope)
            whole = (
                value if whole is None else self.node(before, "And", [whole, value], ir.DataType.BOOL, scope)
            )
        assert whole is not None
        return whole

    def _first_keys(
        self, before: ir.Node, counts: ir.Value, keys: Sequence[tuple[ir.Value, int]], scope: str
    ) -> ir.Value:
        """(B, keys) bool from (B) counts: True for the first so many keys."""
        end = self.squeeze(before, self._sum_of_lengths(before, keys, scope), 0, scope)
        start, one = (self.constant(before, np.asarray(number, np.int64), scope) for number in (0, 1))
        number = self.node(before, "Range", [start, end, one], ir.DataType.INT64, scope)
        wide = self.cast(before, counts, ir.DataType.INT64, scope)
        return self.node(
            before, "Less", [number, self.unsqueeze(before, wide, 1, scope)], ir.DataType.BOOL, scope
        )

    def _cut(
        self, before: ir.Node, value: ir.Value, keys: Sequence[tuple[ir.Value, int]], scope: str
    ) -> ir.Value:
        """The first elements of (B, length), as many as the lengths `keys` sum up to."""
        end = self._sum_of_lengths(before, keys, scope)
        start, axes = (self.constant(before, np.asarray([number], np.int64), scope) for number in (0, 1))
        return self.node(before, "Slice", [value, start, end, axes], value.dtype, scope)

    def _sum_of_lengths(self, before: ir.Node, keys: Sequence[tuple[ir.Value, int]], scope: str) -> ir.Value:
        """One element: the sum of the lengths of the given values along the given axes."""
        end: ir.Value | None = None
        for one, axis in keys:
            shape = self.node(before, "Shape", [one], ir.DataType.INT64, scope)
            at = self.constant(before, np.asarray([axis], np.int64), scope)
            length = self.node(before, "Gather", [shape, at], ir.DataType.INT64, scope)
            end = length if end is None else self.node(before, "Add", [end, length], ir.DataType.INT64, scope)
        assert end is not None
        return end

    def bias(self, before: ir.Node, terms: Sequence[Term], dtype: ir.DataType, scope: str) -> ir.Value:
        """The sum of `terms` as one tensor of `dtype`."""
        keys = tuple((step.kind, step.value, step.sign, step.hides_when) for step, _, _ in terms)
        return self.shared(
            ("bias", before.graph, keys, dtype), lambda: self._bias(before, terms, dtype, scope)
        )

    def _bias(self, before: ir.Node, terms: Sequence[Term], dtype: ir.DataType, scope: str) -> ir.Value:
        whole: ir.Value | None = None
        for step, own_type, heads in terms:
            value = self._addend(before, step, own_type, dtype, scope)
            if heads:  # (B*H, S, T) -> (B*H, 1, S, T) -> (B, H, S, T)
                value = self.reshape(
                    before, self.unsqueeze(before, value, 1, scope), (-1, heads, 0, 0), scope
                )
            whole = value if whole is None else self.node(before, "Add", [whole, value], dtype, scope)
        assert whole is not None
        return whole

    def _addend(
        self, before: ir.Node, step: Step, own_type: ir.DataType | None, dtype: ir.DataType, scope: str
    ) -> ir.Value:
        assert step.value is not None
        if step.kind == "where":
            numpy_type = dtype.numpy()
            fill = self.constant(before, np.asarray(-np.inf, numpy_type), scope)
            zero = self.constant(before, np.asarray(0, numpy_type), scope)
            branches = [fill, zero] if step.hides_when else [zero, fill]
            return self.node(before, "Where", [self.now(step.value), *branches], dtype, scope)
        value = self.now(step.value)
        if own_type != dtype:
            value = self.cast(before, value, dtype, scope)
        return value if step.sign > 0 else self.node(before, "Neg", [value], dtype, scope)

    def shared(self, key: tuple[object, ...], make: Callable[[], ir.Value]) -> ir.Value:
        """What `make` makes, made once per key."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]
