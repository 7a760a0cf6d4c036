"""Masks on one attention: what they mean is recovered as attributes or a key mask, what is left is a bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.problems import Sizes
from numpy.typing import NDArray
from zyfa_ort.graph_passes.report import FuseReport
from zyfa_ort.graph_passes.schema import INPUTS

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, feeds, one_attention
from graph_passes.graph import Array, Graph
from graph_passes.running import Feeds, attention_nodes, attribute, check_fused, fuse, fused_session

SIZES = Sizes(batch=4, heads=4, kv_heads=2, q_len=10, kv_len=10)
LONG = Sizes(batch=4, heads=4, kv_heads=2, q_len=75, kv_len=75)
# Left, right, scattered and no padding, one per batch row.
PATTERNS = ("0011111111", "1111110000", "0110010101", "1111111111")


def key_masks(sizes: Sizes = SIZES) -> NDArray[np.int64]:
    rows = np.array([[int(bit) for bit in pattern] for pattern in PATTERNS])
    return np.resize(np.repeat(rows, -(-sizes.kv_len // 10), axis=1), (4, sizes.kv_len))


def padded(sizes: Sizes, name: str = "attention_mask", dtype: Any = np.float32) -> dict[str, Array]:
    return feeds(sizes, dtype) | {name: key_masks(sizes)}


def causal_rows(given: Feeds) -> NDArray[np.bool_]:
    """Rows with a visible key under a causal mask and `attention_mask`."""
    return np.cumsum(given["attention_mask"], axis=1) > 0


def has_inputs(model: onnx.ModelProto) -> set[str]:
    (node,) = attention_nodes(model)
    return {name for name, value in zip(INPUTS, node.input, strict=False) if value}


def counting(rows: int, keys: int, head_dim: int = 4, **more: Any) -> dict[str, Array]:
    """Q = 0: every visible key weighs the same; V of key j is j, so a row answers the mean of the keys it sees."""
    value = np.broadcast_to(np.arange(keys, dtype=np.float32)[None, :, None], (1, keys, head_dim))
    return {
        "query": np.zeros((1, rows, head_dim), np.float32),
        "key": np.random.default_rng(0).standard_normal((1, keys, head_dim)).astype(np.float32),
        "value": np.ascontiguousarray(value),
        **more,
    }


ONE = Sizes(batch=1, heads=1, kv_heads=1, head_dim=4)


def means(model: onnx.ModelProto, given: Feeds) -> tuple[list[float], FuseReport]:
    """What a fused model of sizes ONE answers in its first channel."""
    after, report = fuse(model)
    return zyfa_ort.run(fused_session(after), given)["output"][0, :, 0].tolist(), report


@pytest.mark.parametrize("form", ["sdpa", "eager"])
@pytest.mark.parametrize("number", [masks.LOWEST, -np.inf, -1e9, -1e4])
def test_causal_and_padding_in_one_mask(form: Any, number: float) -> None:
    """Left, right and scattered padding; a row that sees nothing gives zeros, whatever the exporter fills in."""
    style = Style(form=form, mask=masks.causal_and_padding(number=number))
    model = one_attention(SIZES, style).model()
    after, report = check_fused(model, padded(SIZES), padded(LONG), rows=causal_rows)
    assert report.sites[0].mask == ("causal", "key mask")
    assert has_inputs(after) == {"query", "key", "value", "key_mask"}
    assert attention_nodes(after)[0].input[5] == "attention_mask"


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_, np.float32])
@pytest.mark.parametrize("hides", [0, 1])
def test_key_mask_of_any_type_and_sense(dtype: Any, hides: int) -> None:
    """1 for tokens or 1 for padding, in an integer, boolean or float input."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", dtype, ["batch", "keys"])
        hidden = graph.cast(graph.unsqueeze(name, 1, 2), np.bool_)
        hidden = graph.op("Not", hidden) if hides == 0 else hidden
        return masks.add(graph, scores, masks.fill(graph, hidden, masks.LOWEST, np.float32))

    model = one_attention(SIZES, Style(mask=mask)).model()
    given = feeds(SIZES)
    given["attention_mask"] = (key_masks() if hides == 0 else 1 - key_masks()).astype(dtype)
    after, report = check_fused(model, given)
    assert report.sites[0].mask == ("key mask",)
    assert "attn_bias" not in has_inputs(after)


@pytest.mark.parametrize("values", [(0, 1), (0, 1, 2, -1)])
def test_only_one_lets_a_key_through(values: tuple[int, ...]) -> None:
    """BERT in older transformers: where(1 - mask, lowest, 1 - mask), expanded to all rows. 2 and -1 hide like 0."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", np.int64, ["batch", "keys"])
        rows = graph.op("Concat", graph.integers(1, 1), graph.length(scores, 2), graph.integers(1), axis=0)
        wide = graph.op("Expand", graph.unsqueeze(name, 1, 2), rows)
        inverted = graph.op("Sub", graph.constant(1, np.float32), graph.cast(wide, np.float32))
        low = graph.constant(masks.LOWEST, np.float32)
        return masks.add(graph, scores, graph.op("Where", graph.cast(inverted, np.bool_), low, inverted))

    model = one_attention(SIZES, Style(mask=mask)).model()
    others = np.resize(np.array(values), key_masks().shape)
    given = feeds(SIZES) | {"attention_mask": others}
    _, report = check_fused(model, feeds(SIZES) | {"attention_mask": key_masks()}, given)
    assert report.sites[0].mask == ("key mask",)


@pytest.mark.parametrize("number", [1e4, 1e9, -masks.LOWEST])
@pytest.mark.parametrize("form", ["(1 - mask) * -number", "mask * number - number"])
def test_numbers_that_hide_are_no_lengths(number: float, form: str) -> None:
    """BERT's arithmetic. Read as a length, 1e9 would ask for a trial run of a billion keys."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", np.int64, ["batch", "keys"])
        wide = graph.cast(graph.unsqueeze(name, 1, 2), np.float32)
        if form == "(1 - mask) * -number":
            low = graph.constant(-number, np.float32)
            return masks.add(
                graph, scores, graph.op("Mul", graph.op("Sub", graph.constant(1, np.float32), wide), low)
            )
        high = graph.constant(number, np.float32)
        return masks.add(graph, scores, graph.op("Sub", graph.op("Mul", wide, high), high))

    model = one_attention(SIZES, Style(mask=mask)).model()
    given = feeds(SIZES) | {"attention_mask": key_masks()}
    _, report = check_fused(model, given)
    assert report.sites[0].mask == ("key mask",)


def test_a_float_mask_may_hide_by_half() -> None:
    """The same arithmetic on a float input can add -1 to a score; it stays a bias."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", np.float32, ["batch", "keys"])
        missing = graph.op("Sub", graph.constant(1, np.float32), graph.unsqueeze(name, 1, 2))
        return masks.add(graph, scores, graph.op("Mul", missing, graph.constant(-1e4, np.float32)))

    model = one_attention(SIZES, Style(mask=mask)).model()
    soft = np.where(key_masks() == 1, np.float32(1), np.float32(0.9999))
    _, report = check_fused(model, feeds(SIZES) | {"attention_mask": soft})
    assert report.sites[0].mask == ("bias",)


@pytest.mark.parametrize("where_first", [True, False])
def test_causal_and_padding_as_two_masks(where_first: bool) -> None:
    """GPT-2: Where(causal) and Add(padding), in either order."""
    first, second = masks.causal_where(masks.LOWEST), masks.key_padding()
    both = (first, second) if where_first else (second, first)
    style = Style(mask=lambda graph, scores: both[1](graph, both[0](graph, scores)))
    after, report = check_fused(
        one_attention(SIZES, style).model(), padded(SIZES), padded(LONG), rows=causal_rows
    )
    assert report.sites[0].mask == ("causal", "key mask")
    assert "attn_bias" not in has_inputs(after)


@pytest.mark.parametrize("floor", ["Max", "Clip"])
def test_scores_kept_above_a_floor(floor: str) -> None:
    """OPT: max(scores + mask, the type's minimum) changes no visible key."""

    def mask(graph: Graph, scores: str) -> str:
        return graph.op(floor, masks.causal()(graph, scores), graph.constant(masks.LOWEST, np.float32))

    _, report = check_fused(one_attention(SIZES, Style(mask=mask)).model(), feeds(SIZES))
    assert report.sites[0].mask == ("causal",)


def test_a_scale_after_the_mask() -> None:
    """(scores + mask) * factor: hidden stays hidden, the factor goes to the scores."""

    def mask(graph: Graph, scores: str) -> str:
        return graph.op("Mul", masks.causal(-np.inf)(graph, scores), graph.constant(0.25, np.float32))

    _, report = check_fused(one_attention(SIZES, Style(mask=mask, scale_op="none")).model(), feeds(SIZES))
    assert (report.sites[0].mask, report.sites[0].scale) == (("causal",), None)


def test_padding_mask_built_like_a_causal_one() -> None:
    """BERT in transformers 5: Range, compare, And, Where as in a causal mask, but the comparison is row >= 0."""

    def mask(graph: Graph, scores: str) -> str:
        graph.input("attention_mask", np.int64, ["batch", "keys"])
        row, key = masks.positions(graph, scores)
        always = graph.op("GreaterOrEqual", row, graph.op("Mul", key, graph.constant(0, np.int64)))
        exists = graph.unsqueeze(graph.cast("attention_mask", np.bool_), 1, 2)
        hidden = graph.op("Not", graph.op("And", always, exists))
        return masks.add(graph, scores, masks.fill(graph, hidden, masks.LOWEST, np.float32))

    model = one_attention(SIZES, Style(mask=mask)).model()
    _, report = check_fused(model, padded(SIZES), padded(LONG))
    assert report.sites[0].mask == ("key mask",) and not report.sites[0].is_causal


@pytest.mark.parametrize("build", [masks.causal, masks.causal_where])
def test_sliding_window_by_hand(build: Any) -> None:
    """Window 3, six tokens: the means are 0, 0.5, 1, 2, 3, 4; a plain causal rule would end on 2.5."""
    model = one_attention(ONE, Style(mask=build(window=3))).model()
    got, report = means(model, counting(6, 6))
    np.testing.assert_allclose(got, [0, 0.5, 1, 2, 3, 4], atol=1e-6)
    assert report.sites[0].mask == ("causal", "window") and report.sites[0].window_left == 2


@pytest.mark.parametrize("window", [1, 2, 7, 20, 513])
def test_window_length_is_read_exactly(window: int) -> None:
    """A window longer than the usual trial runs is found by a longer one."""
    model = one_attention(SIZES, Style(mask=masks.causal(window=window))).model()
    after, report = check_fused(model, feeds(SIZES), feeds(LONG))
    assert report.sites[0].window_left == window - 1
    assert attribute(attention_nodes(after)[0], "window_left") == window - 1


def test_window_beside_a_stored_table() -> None:
    """A small table in the mask is not its end: the window of 40 lies beyond it and counts."""

    def mask(graph: Graph, scores: str) -> str:
        table = graph.constant(np.zeros((4, 12)), np.int64)
        zero = graph.op(
            "Gather", graph.op("Gather", table, graph.constant(0, np.int64)), graph.constant(3, np.int64)
        )
        row, key = masks.positions(graph, scores)
        oldest = graph.op("Sub", row, graph.op("Add", graph.constant(39, np.int64), zero))
        hidden = graph.op("Or", graph.op("Greater", key, row), graph.op("Less", key, oldest))
        return masks.add(graph, scores, masks.fill(graph, hidden, masks.LOWEST, np.float32))

    model = one_attention(SIZES, Style(mask=mask)).model()
    _, report = check_fused(model, feeds(SIZES), feeds(LONG))
    assert (report.sites[0].mask, report.sites[0].window_left) == (("causal", "window"), 39)


def test_window_with_padding() -> None:
    style = Style(form="sdpa", mask=masks.causal_and_padding(number=-np.inf, window=4))
    # With scattered padding a window may be empty: compare where some key of it is left.
    model = one_attention(SIZES, style).model()

    def rows(given: Feeds) -> NDArray[np.bool_]:
        total = np.cumsum(given["attention_mask"], axis=1)
        return (total - np.pad(total, ((0, 0), (4, 0)))[:, :-4]) > 0

    _, report = check_fused(model, padded(SIZES), padded(LONG), rows=rows)
    assert report.sites[0].mask == ("causal", "window", "key mask") and report.sites[0].window_left == 3


def test_chunks_are_no_window() -> None:
    """Blocks of 4 tokens that see only themselves (Llama 4): no attribute says that, so the mask stays a bias."""

    def mask(graph: Graph, scores: str) -> str:
        row, key = masks.positions(graph, scores)
        chunk = graph.constant(4, np.int64)
        other = graph.op("Equal", graph.op("Div", row, chunk), graph.op("Div", key, chunk))
        hidden = graph.op("Or", graph.op("Not", other), graph.op("Greater", key, row))
        return masks.add(graph, scores, masks.fill(graph, hidden, masks.LOWEST, np.float32))

    _, report = check_fused(one_attention(SIZES, Style(mask=mask)).model(), feeds(SIZES), feeds(LONG))
    assert report.sites[0].mask == ("bias",)
    assert "neither full, causal nor a sliding window" in report.sites[0].notes[0]


@pytest.mark.parametrize(("top_left", "wanted"), [(True, [0, 0.5]), (False, [1.5, 2.0])])
def test_causal_alignment_by_hand(top_left: bool, wanted: list[float]) -> None:
    """Two queries, five keys: which corner the triangle hangs in is read off the mask."""

    def mask(graph: Graph, scores: str) -> str:
        row, key = masks.positions(graph, scores)
        if top_left:
            row = graph.unsqueeze(graph.range(graph.scalar_length(scores, -2)), 1)
        return masks.add(
            graph, scores, masks.fill(graph, graph.op("Greater", key, row), masks.LOWEST, np.float32)
        )

    model = one_attention(ONE, Style(mask=mask), keys="keys").model()
    got, report = means(model, counting(2, 5))
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert report.sites[0].causal_alignment == ("top_left" if top_left else "bottom_right")
    assert report.sites[0].mask == (("causal (top left)",) if top_left else ("causal",))


BIAS = Sizes(batch=2, heads=3, kv_heads=3, q_len=4, kv_len=6)
BIAS_DIMS: dict[str, list[int | str]] = {
    "T": ["keys"],
    "S,T": ["tokens", "keys"],
    "1,1,S,T": [1, 1, "tokens", "keys"],
    "B,1,S,T": ["batch", 1, "tokens", "keys"],
    "1,H,S,T": [1, 3, "tokens", "keys"],
    "B,H,S,T": ["batch", 3, "tokens", "keys"],
    "B,1,1,T": ["batch", 1, 1, "keys"],
}


@pytest.mark.parametrize("dims", BIAS_DIMS)
@pytest.mark.parametrize("swap", [False, True])
def test_bias_shapes(dims: str, swap: bool) -> None:
    """A run-time bias in every shape that broadcasts to (B, H, S, T)."""
    names = BIAS_DIMS[dims]
    style = Style(form="sdpa", mask=masks.bias("bias", names, swap=swap), swap=swap)
    model = one_attention(BIAS, style, keys="keys").model()
    lengths = {"batch": 2, "tokens": 4, "keys": 6}
    shape = [lengths.get(str(one), one) for one in names]
    given = feeds(BIAS) | {"bias": 3 * np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    after, report = check_fused(model, given)
    assert report.sites[0].mask == ("bias",) and "attn_bias" in has_inputs(after)


def test_boolean_mask_input_of_any_content() -> None:
    """(B, 1, S, T) booleans that only the caller knows become a bias of 0 and -inf; an empty row gives zeros."""

    def mask(graph: Graph, scores: str) -> str:
        graph.input("visible", np.bool_, ["batch", 1, "tokens", "tokens"])
        return graph.op("Where", "visible", scores, graph.constant(-np.inf, np.float32))

    model = one_attention(SIZES, Style(form="sdpa", mask=mask)).model()
    visible = np.random.default_rng(0).random((4, 1, 10, 10)) < 0.5
    visible[1, 0, 3] = False
    _, report = check_fused(model, feeds(SIZES) | {"visible": visible})
    assert report.sites[0].mask == ("bias",)


def test_position_bias_and_causal_mask_in_one_sum() -> None:
    """ALiBi-like: bias (1, H, 1, T) + causal mask, added before they meet the scores: both are recovered."""
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32).reshape(1, 4, 1, 1)

    def mask(graph: Graph, scores: str) -> str:
        key = graph.cast(graph.range(graph.scalar_length(scores, -1)), np.float32)
        alibi = graph.op("Mul", graph.constant(slopes), key)
        triangle = masks.fill(graph, masks.hidden_by_position(graph, scores), masks.LOWEST, np.float32)
        return masks.add(graph, scores, graph.op("Add", alibi, triangle))

    after, report = check_fused(one_attention(SIZES, Style(mask=mask)).model(), feeds(SIZES), feeds(LONG))
    assert report.sites[0].mask == ("causal", "bias")
    assert has_inputs(after) == {"query", "key", "value", "attn_bias"}


def test_numbers_that_do_not_hide_are_a_bias() -> None:
    """-100 in place of a hidden key lets 4e-44 through in the exact answer; -9,998 too: only what hides is a mask."""
    model = one_attention(SIZES, Style(mask=masks.causal(-100.0))).model()
    _, report = check_fused(model, feeds(SIZES))
    assert report.sites[0].mask == ("bias",)


def test_softcap_before_the_mask() -> None:
    """Gemma 2: 5 * tanh(scores / 5), then the mask. By hand, cap 2, two keys of score 0, the second hidden: 0 exactly."""

    def mask(graph: Graph, scores: str) -> str:
        cap = graph.constant(5.0, np.float32)
        capped = graph.op("Mul", graph.op("Tanh", graph.op("Div", scores, cap)), cap)
        return masks.causal()(graph, capped)

    after, report = check_fused(one_attention(SIZES, Style(mask=mask)).model(), feeds(SIZES), feeds(LONG))
    assert (report.sites[0].softcap, report.sites[0].mask, report.sites[0].scale) == (5.0, ("causal",), None)
    assert attribute(attention_nodes(after)[0], "softcap") == 5.0
    got, _ = means(one_attention(ONE, Style(mask=mask)).model(), counting(2, 2))
    assert got[0] == 0


def sink_mask(heads: int, numbers: Any, subtract_max: bool) -> masks.Masking:
    """GPT-OSS: a column of one number per head is appended to the scores."""

    def mask(graph: Graph, scores: str) -> str:
        batch, rows = graph.length(scores, 0), graph.length(scores, 2)
        column = graph.constant(np.asarray(numbers, np.float32).reshape(1, heads, 1, 1))
        one = graph.integers(1)
        shape = graph.op("Concat", batch, graph.integers(heads), rows, one, axis=0)
        whole = graph.op("Concat", scores, graph.op("Expand", column, shape), axis=-1)
        if not subtract_max:
            return whole
        return graph.op("Sub", whole, graph.over("ReduceMax", whole, -1, keepdims=1))

    return mask


def sink_model(sizes: Sizes, numbers: Any, subtract_max: bool, cut: str = "Slice") -> onnx.ModelProto:
    """One attention with sinks; the column is cut off the probabilities again."""
    graph = Graph()
    style = Style(
        mask=lambda graph, scores: sink_mask(sizes.heads, numbers, subtract_max)(
            graph, masks.causal()(graph, scores)
        )
    )
    graph = one_attention(sizes, style, graph=graph)
    at = next(i for i, node in enumerate(graph.nodes) if node.op_type == "Softmax")
    attended = next(node for node in graph.nodes if "softmax_0" in node.input)
    tail, graph.nodes[at + 1 :] = graph.nodes[at + 1 :], []
    weights = graph.nodes[at].output[0]
    cut_off = graph.op(
        "Slice", weights, graph.integers(0), graph.integers(-1), graph.integers(-1), graph.integers(1)
    )
    attended.input[list(attended.input).index(weights)] = cut_off
    graph.nodes.extend(tail)
    return graph.model()


@pytest.mark.parametrize("subtract_max", [False, True])
def test_sinks(subtract_max: bool) -> None:
    """One extra logit per head in the denominator."""
    numbers = [0.0, 2.5, -1.0, 6.0]
    after, report = check_fused(sink_model(SIZES, numbers, subtract_max), feeds(SIZES), feeds(LONG))
    assert report.sites[0].mask == ("causal", "sinks")
    assert "sinks" in has_inputs(after)


def test_sinks_by_hand() -> None:
    """Two keys and a sink, all of score 0, V = 3: two thirds of it."""
    given = counting(2, 2)
    given["value"][:] = 3
    got, _ = means(sink_model(ONE, [0.0], False), given)
    np.testing.assert_allclose(got, [1.5, 2.0], atol=1e-6)


def test_a_bias_where_keys_are_visible() -> None:
    """Where(visible, bias, -inf), as torch writes a float bias under a boolean mask: the mask is taken out of it."""

    def mask(graph: Graph, scores: str) -> str:
        visible = graph.op("Not", masks.hidden_by_position(graph, scores))
        bias = graph.input("bias", np.float32, [1, SIZES.heads, "tokens", "tokens"])
        return masks.add(graph, scores, graph.op("Where", visible, bias, graph.constant(-np.inf, np.float32)))

    model = one_attention(SIZES, Style(mask=mask)).model()
    numbers = np.random.default_rng(3).standard_normal((1, SIZES.heads, 10, 10)).astype(np.float32)
    after, report = check_fused(model, feeds(SIZES) | {"bias": numbers})
    assert report.sites[0].mask == ("causal", "bias")
    assert attention_nodes(after)[0].input[6] == "bias"
