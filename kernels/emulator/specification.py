"""Kernel arguments written as words: ``f32[2,128]=randn:7``, ``out:bf16[64]``, ``u32=5``, ``i32[8]=@file.npy``, ``null``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from zyfa_ort.kernels.emulator.arguments import Value
from zyfa_ort.kernels.errors import EmulationError

TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(dtype)
    for name, dtype in {
        **{f"{sign}{bits}": f"{sign}{bits // 8}" for sign in "iu" for bits in (8, 16, 32, 64)},
        **{"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
        **{"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "e8m0": ml_dtypes.float8_e8m0fnu},
    }.items()
}
# What buffers that only receive results hold before: wrong in every type, so that elements nobody wrote are seen.
_UNWRITTEN = 0xCD
_WORD = re.compile(
    r"(?P<out>out:)?(?:(?P<type>\w+)(?:\[(?P<shape>[\d,\s]*)\])?)?(?:=?(?P<file>@.+)|=(?P<fill>[^@].*))?"
)


@dataclass
class Specified:
    """An argument made from a word. `is_output`: the word began with ``out:``."""

    word: str
    value: Value
    is_output: bool

    @property
    def array(self) -> np.ndarray[Any, Any] | None:
        return self.value if isinstance(self.value, np.ndarray) else None


def specify(word: str) -> Specified:
    """The argument that a word means.

    Raises EmulationError: words that do not follow the grammar, values that do not fit the type, files that cannot be read.
    """
    if word == "null":
        return Specified(word, None, False)
    if word.startswith("bytes="):
        try:
            return Specified(word, bytes.fromhex(word.removeprefix("bytes=")), False)
        except ValueError:
            raise EmulationError(f"argument '{word}': expected hexadecimal digits after bytes=") from None
    match = _WORD.fullmatch(word)
    if match is None or not (match["type"] or match["file"]):
        raise EmulationError(
            f"argument '{word}': expected TYPE[SHAPE]=FILL, TYPE=NUMBER, @FILE.npy, bytes=HEX or null"
        )
    is_output = match["out"] is not None
    if match["type"] is None:
        return Specified(word, _loaded(word, match["file"]), is_output)
    dtype = TYPES.get(match["type"])
    if dtype is None:
        raise EmulationError(
            f"argument '{word}': expected a type of {', '.join(TYPES)}, got '{match['type']}'"
        )
    if match["shape"] is None and match["file"] is None:
        if is_output or match["fill"] is None:
            raise EmulationError(f"argument '{word}': expected a shape, as in {match['type']}[64]")
        return Specified(word, _number(word, dtype, match["fill"]), False)
    if match["file"] is not None:
        return Specified(word, _fitted(word, _loaded(word, match["file"]), dtype, match["shape"]), is_output)
    shape = _shape(match["shape"])
    if match["fill"] is None and is_output:
        made = np.full(int(np.prod(shape)) * dtype.itemsize, _UNWRITTEN, np.uint8).view(dtype).reshape(shape)
    else:
        made = _filled(word, dtype, shape, match["fill"] or "zeros")
    return Specified(word, made, is_output)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size.strip())


def _number(word: str, dtype: np.dtype[Any], text: str) -> np.generic:
    value: int | float
    try:
        if dtype.kind in "iu":
            value = int(text, 0)
            limits = np.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                raise EmulationError(f"argument '{word}': expected {limits.min}..{limits.max}, got {text}")
        else:
            value = float(text)
    except ValueError:
        raise EmulationError(f"argument '{word}': expected a number, got '{text}'") from None
    made: np.generic = np.array([value]).astype(dtype)[0]
    return made


def _random(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Reals in [0, 1), integers over their whole range."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.random(shape).astype(dtype)


def _normal(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


_SEEDED: dict[str, Callable[[np.dtype[Any], tuple[int, ...], int], np.ndarray[Any, Any]]] = {
    "random": _random,
    "randn": _normal,
}


def _filled(word: str, dtype: np.dtype[Any], shape: tuple[int, ...], fill: str) -> np.ndarray[Any, Any]:
    name, _, seed = fill.partition(":")
    if name in _SEEDED:
        if seed and not seed.isdecimal():
            raise EmulationError(f"argument '{word}': expected a seed as in {name}:7, got '{seed}'")
        return _SEEDED[name](dtype, shape, int(seed or 0))
    if fill == "zeros":
        return np.zeros(shape, dtype)
    if fill == "ones":
        return np.ones(shape, dtype)
    if fill == "arange":
        return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    try:
        return np.full(shape, _number(word, dtype, fill), dtype)
    except EmulationError as error:
        fills = "zeros, ones, arange, random[:SEED], randn[:SEED], @FILE.npy or a number"
        raise EmulationError(str(error).replace("a number", fills)) from None


def _loaded(word: str, file: str) -> np.ndarray[Any, Any]:
    path = Path(file.removeprefix("@"))
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise EmulationError(f"argument '{word}': {path} cannot be read as .npy: {error}") from None
    if not isinstance(loaded, np.ndarray):
        raise EmulationError(f"argument '{word}': expected one array in {path}, got an archive")
    return np.ascontiguousarray(loaded)


def _fitted(
    word: str, array: np.ndarray[Any, Any], dtype: np.dtype[Any], shape: str | None
) -> np.ndarray[Any, Any]:
    """The array of a file under the type the word gives; .npy files hold bf16 and fp8 as plain bytes of their width."""
    if array.dtype != dtype:
        if array.dtype.itemsize != dtype.itemsize or array.dtype.kind not in "Vu":
            raise EmulationError(f"argument '{word}': expected {dtype} in the file, got {array.dtype}")
        array = array.view(dtype)
    if shape is not None and array.shape != _shape(shape):
        raise EmulationError(
            f"argument '{word}': expected shape {list(_shape(shape))} in the file, got {list(array.shape)}"
        )
    return array
