"""Which attention problems are timed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Shape:
    """One causal attention: `rows` queries at the end of `keys` keys."""

    rows: int
    keys: int
    heads: int = 32
    kv_heads: int = 8
    qk_dim: int = 128
    v_dim: int = 128
    batch: int = 1

    @property
    def decode(self) -> bool:
        return self.rows == 1 and self.keys > 1

    @property
    def visible_pairs(self) -> int:
        """(query, key) pairs under the causal mask, over batch and heads."""
        first = self.keys - self.rows
        return self.batch * self.heads * (self.rows * first + self.rows * (self.rows + 1) // 2)

    @property
    def flops(self) -> int:
        """Those of Q K^T and P V of visible pairs; masked work does not count."""
        return 2 * (self.qk_dim + self.v_dim) * self.visible_pairs

    @property
    def score_bytes(self) -> int:
        """FP32 scores of all pairs, which an unfused attention keeps in memory."""
        return 4 * self.batch * self.heads * self.rows * self.keys

    def __str__(self) -> str:
        dims = f"{self.qk_dim}" if self.qk_dim == self.v_dim else f"{self.qk_dim}-{self.v_dim}"
        length = f"1 x {self.keys:,}" if self.decode else f"{self.rows:,}"
        return f"{dims}, {self.heads}/{self.kv_heads}, {length}, B = {self.batch}"


DIMS = {"64": (64, 64), "128": (128, 128), "192-128": (192, 128)}
HEADS = {"32/8": (32, 8), "9/3": (9, 3), "16/16": (16, 16)}
LENGTHS = (128, 512, 2048, 8192)
CACHES = (2048, 8192)


def _of(dims: str, heads: str) -> Shape:
    (qk_dim, v_dim), (q_heads, kv_heads) = DIMS[dims], HEADS[heads]
    return Shape(0, 0, q_heads, kv_heads, qk_dim, v_dim)


def prefills(dims: str, heads: str, lengths: tuple[int, ...], batch: int = 1) -> list[Shape]:
    """Square problems of one head configuration."""
    return [replace(_of(dims, heads), rows=n, keys=n, batch=batch) for n in lengths]


def decodes(dims: str, heads: str, batch: int = 1) -> list[Shape]:
    """One new row against a cache."""
    return [replace(_of(dims, heads), rows=1, keys=n, batch=batch) for n in CACHES]


def one(dims: str, heads: str, length: int, batch: int, decode: bool) -> Shape:
    """A single problem."""
    return replace(_of(dims, heads), rows=1 if decode else length, keys=length, batch=batch)


def quick() -> Iterator[Shape]:
    """A few minutes: every head dim, head configuration, length and batch at least once."""
    yield from prefills("128", "32/8", LENGTHS[:3])
    yield from prefills("64", "9/3", LENGTHS)
    yield from prefills("192-128", "16/16", (2048,))
    yield from prefills("128", "32/8", (512,), batch=4)
    yield from decodes("128", "32/8")


def prompts() -> Iterator[Shape]:
    """A quarter of an hour with one precision: prefills of 512 rows and more, all dims and heads; batches of 512 rows."""
    for dims in DIMS:
        for heads in HEADS:
            yield from prefills(dims, heads, LENGTHS[1:])
            yield from prefills(dims, heads, LENGTHS[1:2], batch=4)


def full() -> Iterator[Shape]:
    """About an hour: everything with everything."""
    for dims in DIMS:
        for heads in HEADS:
            for batch in (1, 4):
                yield from prefills(dims, heads, LENGTHS, batch)
                yield from decodes(dims, heads, batch)
