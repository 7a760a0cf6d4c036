"""Input sets of the stored graphs, made from a few words: "2x12+5 left3" is two rows of twelve tokens after five cached
ones, the last row with three tokens of padding on its left; "2x12/9" decodes nine tokens after encoding twelve."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray

VOCABULARY: Final = 64
ENCODER_LENGTH: Final = 20  # of cross attention
ENCODER_PADDING: Final = 5
IMAGE: Final = (3, 32, 32)

DTYPES: Final[dict[int, Any]] = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.FLOAT16: np.float16,
    onnx.TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    onnx.TensorProto.INT64: np.int64,
}


@dataclass(frozen=True)
class InputSet:
    """Sizes of one run; `left` or `right` tokens of the last row are padding, `decoded` is the decoder's length where
    an encoder takes `tokens`."""

    batch: int
    tokens: int
    past: int = 0
    decoded: int = 0
    left: int = 0
    right: int = 0

    @classmethod
    def parse(cls, words: str) -> InputSet:
        """Raises ValueError for anything but BATCHxTOKENS[+PAST][/DECODED] [leftN|rightN]."""
        found = re.fullmatch(r"(\d+)x(\d+)(?:\+(\d+))?(?:/(\d+))?(?: (left|right)(\d+))?", words)
        if found is None:
            raise ValueError(f"input set {words!r}: expected words like '2x12', '2x12+5 left3' or '2x12/9'")
        *sizes, side, padding = found.groups()
        return cls(*(int(size or 0) for size in sizes), **({side: int(padding)} if side else {}))

    def mask(self) -> NDArray[np.int64]:
        """(batch, past + tokens), 1 for tokens and 0 for padding."""
        mask = np.ones((self.batch, self.past + self.tokens), np.int64)
        mask[-1, : self.left] = 0
        mask[-1, self.past + self.tokens - self.right :] = 0
        return mask

    def positions(self) -> NDArray[np.int64]:
        return np.maximum(np.cumsum(self.mask(), axis=1) - 1, 0)[:, self.past :]


def feeds(model: onnx.ModelProto, words: str, head_dim: int) -> dict[str, NDArray[Any]]:
    """All inputs of `model` for one input set; the same words give the same arrays.

    head_dim: of caches whose last length the model leaves open.
    """
    size = InputSet.parse(words)
    made = {}
    for value in model.graph.input:
        random = np.random.Generator(np.random.Philox(crc32(f"{value.name} {words}".encode())))
        kind = value.type.tensor_type
        if kind.elem_type == onnx.TensorProto.INT64:
            values = INTEGERS[value.name](size, random)
        else:
            dims = [one.dim_value for one in kind.shape.dim]
            values = random.standard_normal(_float_shape(value.name, dims, size, head_dim))
        made[value.name] = values.astype(DTYPES[kind.elem_type])
    return made


def _float_shape(name: str, dims: list[int], size: InputSet, head_dim: int) -> tuple[int, ...]:
    if name == "pixel_values":
        return (size.batch, *IMAGE)
    if name == "audio_features":
        return (size.batch, *dims[1:])
    if len(dims) == 3:
        return (size.batch, ENCODER_LENGTH if name == "encoder_hidden_states" else size.tokens, dims[2])
    cached = ENCODER_LENGTH if ".encoder." in name else size.past
    return (size.batch, dims[1], cached, dims[3] or head_dim)


def _ids(size: InputSet, random: np.random.Generator) -> NDArray[Any]:
    return random.integers(3, VOCABULARY - 4, (size.batch, size.tokens))


def _decoder_ids(size: InputSet, random: np.random.Generator) -> NDArray[Any]:
    return random.integers(3, VOCABULARY - 4, (size.batch, size.decoded or size.tokens))


def _encoder_mask(size: InputSet, _: np.random.Generator) -> NDArray[Any]:
    return InputSet(size.batch, ENCODER_LENGTH, right=ENCODER_PADDING).mask()


INTEGERS: Final[dict[str, Callable[[InputSet, np.random.Generator], NDArray[Any]]]] = {
    "input_ids": _ids,
    "decoder_input_ids": _decoder_ids,
    "attention_mask": lambda size, _: size.mask(),
    "encoder_attention_mask": _encoder_mask,
    "position_ids": lambda size, _: size.positions(),
    "token_type_ids": lambda size, _: np.zeros((size.batch, size.tokens)),
}
