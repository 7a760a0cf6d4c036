"""Inputs for a model: valid ones made from its signature, or the user's own from .npz files.

Valid means: token ids within the vocabulary, a mask that is contiguous padding, positions that agree with the mask, a cache
of zero length. A random 0/1 mask makes any two runtimes differ on rows that mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zyfa_ort.errors import InputError
from zyfa_ort.tensors import numpy_dtype

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

Inputs = dict[str, "NDArray[Any]"]

# Only ids that every tokenizer has; special tokens live at both ends of a vocabulary.
_LOWEST_ID = 10
_DEFAULT_VOCABULARY = 1000


@dataclass(frozen=True)
class Request:
    """Sizes of made inputs. With batch > 1 the last row is padded on the left by a quarter of its tokens."""

    tokens: int = 64
    batch: int = 2
    seed: int = 0
    vocabulary: int = _DEFAULT_VOCABULARY

    def mask(self) -> NDArray[np.int64]:
        """(batch, tokens), 1 for tokens and 0 for padding."""
        mask = np.ones((self.batch, self.tokens), np.int64)
        if self.batch > 1:
            mask[-1, : self.tokens // 4] = 0
        return mask


def with_vocabulary(request: Request, vocabulary: int | None) -> Request:
    """The request with the model's number of token ids where that is known."""
    return request if vocabulary is None else replace(request, vocabulary=vocabulary)


def make_inputs(session: onnxruntime.InferenceSession, request: Request) -> Inputs:
    """Inputs for every input of the session's model; the same request gives the same arrays.

    Raises:
        InputError: an input whose meaning cannot be told from its name, type and shape.
    """
    rng = np.random.default_rng(request.seed)
    return {
        value.name: _make(value.name, numpy_dtype(value.type), list(value.shape), request, rng)
        for value in session.get_inputs()
    }


def read_inputs(path: Path) -> list[tuple[str, Inputs]]:
    """Named input sets: one per .npz file, the file itself or all of a folder in order of their names.

    Raises:
        InputError: no such file, or nothing in it.
    """
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: expected at least one .npz file, found none")
    sets = []
    for file in files:
        try:
            with np.load(file) as archive:
                sets.append((file.stem, {name: archive[name] for name in archive.files}))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: expected an .npz file of input arrays: {error}") from error
    return sets


def fit_inputs(session: onnxruntime.InferenceSession, given: Mapping[str, NDArray[Any]]) -> Inputs:
    """The given arrays in the types the model wants (float32 and ml_dtypes arrays are converted), checked by name and rank.

    Raises:
        InputError: an input is missing or has another rank or kind.
    """
    fitted = {}
    for value in session.get_inputs():
        if value.name not in given:
            raise InputError(
                f"input {value.name}: required by the model, got none; given: {', '.join(given)}"
            )
        array, dtype = given[value.name], numpy_dtype(value.type)
        if array.ndim != len(value.shape):
            raise InputError(
                f"input {value.name}: expected {len(value.shape)} dimensions, got shape {array.shape}"
            )
        if _is_float(array.dtype) != _is_float(dtype):
            raise InputError(f"input {value.name}: expected {dtype}, got {array.dtype}")
        fitted[value.name] = array.astype(dtype)
    return fitted


def valid_rows(inputs: Mapping[str, NDArray[Any]], batch: int, rows: int) -> NDArray[np.bool_]:
    """(batch, rows), False where the row belongs to padding and its values mean nothing.

    Rows are the last `rows` positions of the attention mask: all of them for a cache, the new ones for logits.
    """
    valid = np.ones((batch, rows), np.bool_)
    for name, array in inputs.items():
        if (
            "attention_mask" in name
            and array.ndim == 2
            and array.shape[0] == batch
            and array.shape[1] >= rows
        ):
            valid &= array[:, array.shape[1] - rows :].astype(bool)
    return valid


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "iub"


def _sizes(shape: list[Any], free: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its free dimensions filled from `free` in order; the last size of `free` serves all further ones."""
    remaining = list(free)
    sizes = []
    for size in shape:
        if isinstance(size, int):
            sizes.append(size)
        else:
            sizes.append(remaining.pop(0) if len(remaining) > 1 else remaining[0])
    return tuple(sizes)


def _ids(request: Request, rng: np.random.Generator) -> NDArray[Any]:
    return rng.integers(_LOWEST_ID, request.vocabulary, (request.batch, request.tokens))


def _positions(request: Request, _: np.random.Generator) -> NDArray[Any]:
    return np.maximum(np.cumsum(request.mask(), axis=1) - 1, 0)


# Part of an input's name -> its values, (batch, tokens).
_TOKEN_INPUTS: tuple[tuple[str, Callable[[Request, np.random.Generator], NDArray[Any]]], ...] = (
    ("attention_mask", lambda request, rng: request.mask()),
    ("position_ids", _positions),
    ("token_type_ids", lambda request, rng: np.zeros((request.batch, request.tokens), np.int64)),
    ("input_ids", _ids),
    ("ids", _ids),
)


def _make(
    name: str, dtype: np.dtype[Any], shape: list[Any], request: Request, rng: np.random.Generator
) -> NDArray[Any]:
    if "past" in name or ("cache" in name and len(shape) >= 3):
        return np.zeros(_sizes(shape, (request.batch, 0)), dtype)
    if name == "cache_position":
        return np.arange(request.tokens).astype(dtype)
    if _is_float(dtype):
        return rng.standard_normal(_sizes(shape, (request.batch, request.tokens))).astype(dtype)
    for part, values in _TOKEN_INPUTS:
        if part in name and len(shape) == 2:
            return values(request, rng).astype(dtype)
    raise InputError(
        f"input {name}: cannot make values for {dtype} of shape {shape}; give them in an .npz file with --inputs"
    )
