"""Questions about lanes: swaps, maxima, transposed LDS reads, loads straight into LDS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from zyfa_ort.kernels.asm.probe.answers import (
    FAMILIES,
    FP8_PREFILL,
    Array,
    Meaning,
    Probe,
    Words,
    floats_of,
    one_of,
    words_of,
)
from zyfa_ort.kernels.asm.probe.kernels import DMA_BYTES, DMA_M0, DMA_OFFSET
from zyfa_ort.kernels.asm.probe.text import LANES

LANE = np.arange(LANES, dtype=np.uint32)
PREFILL = (*FP8_PREFILL, "bf16_prefill")


def _swap_inputs() -> Words:
    return np.stack([LANE, LANE + 100]).astype(np.uint32)


def _swapped(words: Words, width: int) -> Words:
    """Groups of `width` lanes, odd ones of the first register against even ones of the second."""
    first, second = (w.reshape(-1, 2, width) for w in words)
    return np.stack([
        np.stack([first[:, 0], second[:, 0]], 1).reshape(LANES), np.stack([first[:, 1], second[:, 1]], 1).reshape(LANES)
    ])  # fmt: skip


def _swap32(words: Words, out: Words) -> str:
    return one_of(out[:2], {"upper half of the first with lower of the second": _swapped(words, 32)})


def _swap16(words: Words, out: Words) -> str:
    return one_of(out[2:4], {"odd rows of the first with even of the second": _swapped(words, 16)})


def _max_inputs() -> Words:
    values = np.array([-2.5, 0.0, 7.0, np.nan, -np.inf, np.inf], np.float32)
    return words_of(np.stack([values[LANE % 6], values[LANE // 6 % 6], values[(LANE // 36 * 2 + 1) % 6]]))


def _max(word: int) -> Callable[[Words, Words], str]:
    def read(words: Words, out: Words) -> str:
        given = floats_of(words)
        ignored = np.fmax(np.fmax(given[0], given[1]), given[2])
        kept = np.maximum(np.maximum(given[0], given[1]), given[2])
        return one_of(floats_of(out)[word], {"NaN is ignored": ignored, "NaN wins": kept})

    return read


def _transpose_inputs() -> Words:
    """All 512 bytes of LDS different as far as bytes can be, rows fetched in another order than they lie."""
    random = np.random.default_rng(0)
    data = random.integers(0, 2**32, (2, LANES), dtype=np.uint32)
    return np.concatenate([data, (random.permutation(LANES).astype(np.uint32) * 8)[None]])


def _transposed(words: Words, size: int) -> Words:
    """In each group of 16 lanes: element p of lane i is element i mod n of what lane n' p + i / n fetched."""
    raw = np.ascontiguousarray(words[:2].T).reshape(-1).view(np.uint64)[words[2] // 8]
    elements = raw.view({1: np.uint8, 2: np.uint16}[size]).reshape(4, 16, 8 // size)
    each = 8 // size  # elements of a lane, and lanes that an element's index runs over
    lane, place = np.arange(16)[:, None], np.arange(each)[None]
    found = elements[:, (16 // each) * place + lane // each, lane % each]
    return np.ascontiguousarray(found).reshape(-1).view(np.uint32).reshape(LANES, 2).T


def _transpose(size: int) -> Callable[[Words, Words], str]:
    return lambda words, out: one_of(out, {"as the libraries that run on it say": _transposed(words, size)})


# --- LDS-DMA

IN_RANGE = 3 * 1024  # bytes


def _dma_inputs(offsets: Array, in_range: int, lanes: int) -> Words:
    random = np.random.default_rng(1)
    data = random.integers(0, 2**32, (16, LANES), dtype=np.uint32)
    control = np.zeros(LANES, np.uint32)
    control[:3] = in_range, lanes & 0xFFFFFFFF, lanes >> 32
    return np.concatenate([data, offsets[None].astype(np.uint32), control[None]])


def _dma_plain() -> Words:
    return _dma_inputs(16 * ((LANE * 5) % LANES), DMA_BYTES, 2**64 - 1)


def _dma_beyond(slack: int) -> Words:
    return _dma_inputs(16 * ((LANE * 5) % LANES) + 64 * LANE, IN_RANGE + slack, 2**64 - 1)


def _dma_masked(lanes: int) -> Words:
    return _dma_inputs(16 * ((LANE * 5) % LANES), DMA_BYTES, lanes)


def _dma_result(
    words: Words,
    *,
    fetch: int = DMA_OFFSET,
    place: int = DMA_OFFSET,
    zeros: bool = True,
    close: bool = False,
    unit: int = 4,
) -> Words:
    """LDS behind the load: the instruction's offset moves the fetch and the place by so many bytes; what is out of range
    becomes zero, or nothing, `unit` bytes at a time; places of lanes that are off stay, or close up."""
    data, offset, control = words[:16].reshape(-1), words[16], words[17]
    lds = ~data
    alive = [lane for lane in range(LANES) if (int(control[1]) | int(control[2]) << 32) >> lane & 1]
    for slot, lane in enumerate(alive):
        at = (DMA_M0 + place) // 4 + 4 * (slot if close else lane)
        for dword in range(4):
            source = int(offset[lane]) + fetch + 4 * dword
            if int(offset[lane]) + fetch + 4 * dword // unit * unit + unit <= control[0]:
                lds[at + dword] = data[source // 4]
            elif zeros:
                lds[at + dword] = 0
    return lds.reshape(16, LANES)


def _dma_offset(words: Words, out: Words) -> str:
    return one_of(out, {
        "both addresses": _dma_result(words), "memory only": _dma_result(words, place=0),
        "LDS only": _dma_result(words, fetch=0),
    })  # fmt: skip


def _dma_range(words: Words, out: Words) -> str:
    return one_of(out, {"zeros": _dma_result(words), "nothing written": _dma_result(words, zeros=False)})


def _dma_partly(words: Words, out: Words) -> str:
    return one_of(out, {"dword by dword": _dma_result(words), "lane by lane": _dma_result(words, unit=16)})


def _dma_exec(words: Words, out: Words) -> str:
    return one_of(
        out,
        {"slots stay, nothing written": _dma_result(words), "slots close up": _dma_result(words, close=True)},
    )


NO_DMA = Meaning("no prefill kernel is valid here", PREFILL)
WITH_192 = Meaning("kernels for head dim 192 are not valid here", FP8_PREFILL)

LANES_TABLE = (
    Probe(
        "permlane32_swap", "what v_permlane32_swap exchanges", "v_permlane32_swap", FAMILIES, "probe_swap",
        _swap_inputs, 4, _swap32,
        {"upper half of the first with lower of the second": Meaning("row maxima and sums are complete")},
        Meaning("no kernel is valid here", FAMILIES),
    ),
    Probe(
        "permlane16_swap", "what v_permlane16_swap exchanges", "v_permlane16_swap", ("decode", "quantize"), "probe_swap",
        _swap_inputs, 4, _swap16,
        {"odd rows of the first with even of the second": Meaning("rotations and row maxima are complete")},
        Meaning("decode and quantisation are not valid here", ("decode", "quantize")),
    ),
    Probe(
        "max3_nan", "v_max3_f32 with NaN", "v_max3_f32", ("decode", "quantize"), "probe_max", _max_inputs, 2, _max(0),
        {"NaN is ignored": Meaning("what compilers take for granted")},
        Meaning("maxima of compiled kernels are in doubt", ("decode", "quantize")),
    ),
    Probe(
        "maximum3_nan", "v_maximum3_f32 with NaN", "v_maximum3_f32", (*PREFILL, "quantize"), "probe_max",
        _max_inputs, 2, _max(1),
        {"NaN wins": Meaning("a NaN score makes its row NaN")},
        Meaning("rows with NaN scores are in doubt", (*PREFILL, "quantize")),
    ),
    Probe(
        "transpose_b8", "which bytes ds_read_b64_tr_b8 gives to which lane", "ds_read_b64_tr_b8", FP8_PREFILL,
        "probe_ds_read_b64_tr_b8", _transpose_inputs, 2, _transpose(1),
        {"as the libraries that run on it say": Meaning("values meet their probabilities")},
        Meaning("no FP8 prefill kernel is valid here", FP8_PREFILL),
    ),
    Probe(
        "transpose_b16", "which halves ds_read_b64_tr_b16 gives to which lane", "ds_read_b64_tr_b16",
        ("bf16_prefill", "decode"), "probe_ds_read_b64_tr_b16", _transpose_inputs, 2, _transpose(2),
        {"as the libraries that run on it say": Meaning("values meet their probabilities")},
        Meaning("no BF16 kernel is valid here", ("bf16_prefill", "decode")),
    ),
    Probe(
        "dma_offset", "what the instruction's offset is added to when a load goes into LDS", "buffer_load lds", PREFILL,
        "probe_lds_dma", _dma_plain, 16, _dma_offset,
        {"both addresses": Meaning("no kernel has such an offset"),
         "memory only": Meaning("no kernel has such an offset"), "LDS only": Meaning("no kernel has such an offset")},
        NO_DMA,
    ),
    Probe(
        "dma_out_of_range", "what a load into LDS writes for what is out of range", "buffer_load lds", PREFILL,
        "probe_lds_dma", lambda: _dma_beyond(0), 16, _dma_range,
        {"zeros": Meaning("rows beyond the last key are zeros")},
        Meaning("rows beyond the last key may hold anything: no prefill kernel is valid here", PREFILL),
    ),
    Probe(
        "dma_partly", "a load into LDS whose range ends within the 16 bytes of a lane", "buffer_load lds", PREFILL,
        "probe_lds_dma", lambda: _dma_beyond(8), 16, _dma_partly,
        {"dword by dword": Meaning("no kernel leans on it: rows end with a lane"),
         "lane by lane": Meaning("no kernel leans on it: rows end with a lane")},
        Meaning("no kernel leans on it: rows end with a lane"),
    ),
    Probe(
        "dma_half", "a load into LDS with the upper half of the lanes off", "buffer_load lds", PREFILL,
        "probe_lds_dma", lambda: _dma_masked(2**32 - 1), 16, _dma_exec,
        {"slots stay, nothing written": Meaning("head dim 192 loads its last 64 elements so")}, WITH_192,
    ),
    Probe(
        "dma_holes", "a load into LDS with lanes off in the middle", "buffer_load lds", PREFILL,
        "probe_lds_dma", lambda: _dma_masked(0x0F0FF0F0A5A5FF00), 16, _dma_exec,
        {"slots stay, nothing written": Meaning("no kernel leans on it"),
         "slots close up": Meaning("no kernel leans on it")},
        Meaning("no kernel leans on it"),
    ),
)  # fmt: skip
