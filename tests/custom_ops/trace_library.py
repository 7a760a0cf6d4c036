"""The CPU kernel's FP8 path with its P bytes, through the test-only library beside the operator library."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zyfa_ort

TILE = 64
LIBRARY = "libzyfa_cpu_trace.so"


class _Problem(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "num_heads", "kv_num_heads", "q_len", "kv_len")),
        *((name, ctypes.c_int64) for name in ("qk_dim", "v_dim")),
        ("scale", ctypes.c_float),
        ("is_causal", ctypes.c_int32),
        ("top_left", ctypes.c_int32),
        ("window_left", ctypes.c_int64),
        ("fp8_edges", ctypes.c_char_p),
        ("rotation", ctypes.c_char_p),
    ]


_ROW_TILE = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    *[ctypes.c_int64] * 4,
    ctypes.c_int32,
    ctypes.c_float,
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_float),
)


@dataclass(frozen=True)
class KernelTrace:
    """What the kernel reported per row and tile; `visited` where it reported anything."""

    visited: NDArray[np.bool_]  # (B, H, Sq, tiles)
    is_edge: NDArray[np.bool_]  # (B, H, Sq, tiles)
    m: NDArray[np.float32]  # (B, H, Sq, tiles)
    d: NDArray[np.int32]  # (B, H, Sq, tiles)
    probability: NDArray[np.float32]  # (B, H, Sq, tiles * 64), rounded P in units of 2^d
    output: NDArray[np.float32]  # (B, H, Sq, Dv)
    lse: NDArray[np.float32]  # (B, H, Sq)
    order: list[tuple[int, int, int, int]]  # (b, h, row, tile) as computed


def library_path() -> Path:
    """Where the build puts the library (ZYFA_BUILD_TESTS)."""
    return Path(zyfa_ort.library_path()).with_name(LIBRARY)


def trace_fp8(
    query: NDArray[Any],
    key: NDArray[Any],
    value: NDArray[Any],
    *,
    key_mask: NDArray[Any] | None = None,
    sinks: NDArray[Any] | None = None,
    scale: float,
    is_causal: int = 1,
    causal_alignment: str = "bottom_right",
    window_left: int = -1,
    fp8_edges: str = "hilo",
    rotation: str = "none",
) -> KernelTrace:
    """Run the kernel on (B, H, S, D) arrays and collect what each row did in each tile."""
    q, k, v = (np.ascontiguousarray(tensor, np.float32) for tensor in (query, key, value))
    batch, heads, q_len, qk_dim = q.shape
    kv_heads, kv_len, v_dim = v.shape[1:]
    tiles = -(-kv_len // TILE)
    rows = (batch, heads, q_len)
    trace = KernelTrace(
        visited=np.zeros((*rows, tiles), bool),
        is_edge=np.zeros((*rows, tiles), bool),
        m=np.full((*rows, tiles), np.nan, np.float32),
        d=np.zeros((*rows, tiles), np.int32),
        probability=np.zeros((*rows, tiles * TILE), np.float32),
        output=np.zeros((*rows, v_dim), np.float32),
        lse=np.zeros(rows, np.float32),
        order=[],
    )

    def row_tile(
        _: Any, b: int, h: int, row: int, tile: int, is_edge: int, m: float, d: int, probability: Any
    ) -> None:
        at = b, h, row, tile
        assert not trace.visited[at], f"tile reported twice: batch {b}, head {h}, row {row}, tile {tile}"
        trace.visited[at], trace.is_edge[at], trace.m[at], trace.d[at] = True, is_edge, m, d
        trace.probability[b, h, row, tile * TILE : (tile + 1) * TILE] = probability[:TILE]
        trace.order.append(at)

    problem = _Problem(
        batch,
        heads,
        kv_heads,
        q_len,
        kv_len,
        qk_dim,
        v_dim,
        scale,
        is_causal,
        causal_alignment == "top_left",
        window_left,
        fp8_edges.encode(),
        rotation.encode(),
    )
    mask = None if key_mask is None else np.ascontiguousarray(key_mask != 0).astype(np.uint8)
    sink = None if sinks is None else np.ascontiguousarray(sinks, np.float32)
    error = ctypes.create_string_buffer(512)
    status = ctypes.CDLL(str(library_path())).zyfa_trace_fp8(
        ctypes.byref(problem),
        *(_pointer(array) for array in (q, k, v, mask, sink)),
        _ROW_TILE(row_tile),
        None,
        _pointer(trace.output),
        _pointer(trace.lse),
        error,
        ctypes.c_int64(len(error)),
    )
    assert status == 0, error.value.decode()
    return trace


def _pointer(array: NDArray[Any] | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)
