"""Made inputs are valid, repeatable, and fit the model; given ones are checked."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from zyfa_ort import inputs
from zyfa_ort.errors import InputError


class Session:
    """The part of a session that inputs are made from."""

    def __init__(self, *values: tuple[str, str, list]):
        self.values = [
            SimpleNamespace(name=name, type=f"tensor({kind})", shape=shape) for name, kind, shape in values
        ]

    def get_inputs(self):
        return self.values


DECODER = Session(
    ("input_ids", "int64", ["batch", "sequence"]),
    ("attention_mask", "int64", ["s43", "s53"]),
    ("position_ids", "int64", ["batch", "sequence"]),
    ("past_key_values.0.key", "float16", ["batch", 3, "past", 64]),
)


def test_a_decoder_gets_valid_inputs():
    made = inputs.make_inputs(DECODER, inputs.Request(tokens=16, batch=2, vocabulary=100))
    ids, mask, positions, past = (made[value.name] for value in DECODER.get_inputs())
    assert ids.shape == mask.shape == positions.shape == (2, 16)
    assert ids.min() >= 0
    assert ids.max() < 100
    assert mask[0].all()
    # Contiguous padding, on the left, positions counted from the first token.
    assert mask[1].tolist() == [0] * 4 + [1] * 12
    assert positions[1].tolist() == [0] * 4 + list(range(12))
    assert past.shape == (2, 3, 0, 64)
    assert past.dtype == np.float16


def test_the_same_seed_gives_the_same_inputs():
    first, second, other = (
        inputs.make_inputs(DECODER, inputs.Request(seed=seed))["input_ids"] for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_float_inputs_and_fixed_sizes():
    session = Session(("pixel_values", "bfloat16", ["batch", 3, 8, 8]))
    made = inputs.make_inputs(session, inputs.Request(batch=2))["pixel_values"]
    assert made.shape == (2, 3, 8, 8)
    assert made.dtype == ml_dtypes.bfloat16


def test_an_input_without_a_meaning_is_named():
    session = Session(("mystery", "int64", [3]))
    with pytest.raises(
        InputError, match=r"input mystery: cannot make values for int64 of shape \[3\]; give them"
    ):
        inputs.make_inputs(session, inputs.Request())


def test_given_inputs_are_converted_and_checked():
    session = Session(("x", "bfloat16", ["n", 2]), ("ids", "int64", ["n"]))
    given = {"x": np.ones((3, 2), np.float32), "ids": np.arange(3, dtype=np.int32)}
    fitted = inputs.fit_inputs(session, given)
    assert (fitted["x"].dtype, fitted["ids"].dtype) == (ml_dtypes.bfloat16, np.int64)
    with pytest.raises(InputError, match="input x: required by the model, got none; given: ids"):
        inputs.fit_inputs(session, {"ids": given["ids"]})
    with pytest.raises(InputError, match=r"input x: expected 2 dimensions, got shape \(3,\)"):
        inputs.fit_inputs(session, {**given, "x": np.ones(3, np.float32)})
    with pytest.raises(InputError, match="input ids: expected int64, got float32"):
        inputs.fit_inputs(session, {**given, "ids": np.ones(3, np.float32)})


def test_input_sets_come_from_files_and_folders(tmp_path):
    for name in ("b", "a"):
        np.savez(tmp_path / f"{name}.npz", x=np.ones(1))
    assert [name for name, _ in inputs.read_inputs(tmp_path)] == ["a", "b"]
    assert [name for name, _ in inputs.read_inputs(tmp_path / "b.npz")] == ["b"]
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(InputError, match=r"text\.npz: expected an \.npz file of input arrays"):
        inputs.read_inputs(tmp_path / "text.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: expected at least one \.npz file, found none"):
        inputs.read_inputs(tmp_path / "empty")


def test_padding_rows_are_not_compared():
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    given = {"attention_mask": mask}
    assert inputs.valid_rows(given, 2, 5).tolist() == mask.astype(bool).tolist()
    # With a past of two tokens the mask is longer than the rows: its end counts.
    assert inputs.valid_rows(given, 2, 3).tolist() == [[True] * 3, [True] * 3]
