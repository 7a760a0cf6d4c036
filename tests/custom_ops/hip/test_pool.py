"""When a block of device memory is given out again, and when it is not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from custom_ops.hip.hip_window import Pool, WindowError, free_bytes
from kernels.emulator.hip_api import Hip

A, B, C = 0xA0, 0xB0, 0xC0  # streams, by name alone


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    for stream in (A, B, C):
        made.finished(stream)
    made.trim()


def test_the_stream_that_used_a_block_gets_it_at_once(pool: Pool) -> None:
    first = pool.allocate(1000, A)
    pool.release(first)
    assert pool.allocate(1000, A) == first


def test_another_stream_gets_it_when_the_work_is_done(pool: Pool) -> None:
    first = pool.allocate(1000, A)
    pool.release(first)
    other = pool.allocate(1000, B)
    assert other != first
    pool.finished(A)
    assert pool.allocate(1000, B) == first


def test_nobody_in_particular_gets_it_when_the_work_is_done(pool: Pool) -> None:
    first = pool.allocate(1000, A)
    pool.release(first)
    assert pool.allocate(1000) != first
    pool.finished(A)
    assert pool.allocate(1000) == first


def test_a_block_of_no_stream_waits_for_all_that_had_work(pool: Pool) -> None:
    """ONNX Runtime does not say where such a block was used."""
    first = pool.allocate(1000)
    pool.touch(A)
    pool.touch(B)
    pool.release(first)
    pool.touch(C)  # later work cannot have used it
    assert pool.allocate(1000, A) != first
    pool.finished(A)
    assert pool.allocate(1000, A) != first
    pool.finished(B)
    assert pool.allocate(1000, A) == first


def test_without_work_it_is_free_at_once(pool: Pool) -> None:
    first = pool.allocate(1000)
    pool.release(first)
    assert pool.allocate(1000, A) == first


@pytest.mark.parametrize(
    ("size", "same", "other"), [(1, 256, 257), (257, 512, 513), (1 << 20, 1 << 20, (1 << 20) + 1)]
)
def test_sizes_that_share_a_block(pool: Pool, size: int, same: int, other: int) -> None:
    first = pool.allocate(size)
    pool.release(first)
    assert pool.allocate(other) != first
    assert pool.allocate(same) == first


@pytest.mark.parametrize("size", [100_000, 1_000_000, 10_000_001])
def test_at_most_an_eighth_is_wasted(pool: Pool, size: int) -> None:
    hip = Hip()
    pool.trim()
    before = free_bytes(hip)
    pool.allocate(size)
    assert size <= before - free_bytes(hip) <= size * 9 / 8 + 4096


def test_blocks_are_aligned_and_apart(pool: Pool) -> None:
    blocks = sorted(pool.allocate(300) for _ in range(8))
    assert all(block % 256 == 0 for block in blocks)
    assert all(later - block >= 300 for block, later in itertools.pairwise(blocks))


def test_trim_gives_back_what_is_unused_alone(pool: Pool) -> None:
    hip = Hip()
    pool.trim()
    before = free_bytes(hip)
    kept, dropped = pool.allocate(1 << 20, A), pool.allocate(1 << 20, B)
    pool.release(dropped)
    pool.trim()
    assert before - free_bytes(hip) == 1 << 20
    pool.release(kept)
    pool.trim()
    assert free_bytes(hip) == before


def test_more_than_there_is(pool: Pool) -> None:
    with pytest.raises(
        WindowError, match=r"^hipMalloc of \d+ bytes with \d+ of \d+ free: .*\(hipErrorOutOfMemory\)"
    ):
        pool.allocate(1 << 50)


def test_what_was_never_given_out_is_not_taken_back(pool: Pool) -> None:
    pool.release(0x1234)
    assert pool.allocate(1000) != 0x1234
