"""Random sequences of operations across lanes: the HIP text of each, and what NumPy says it does."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

Words = np.ndarray
LANES = np.arange(64)
# Control code of a DPP move -> the lane that each lane reads, -1 where there is none.
DPP: dict[int, Words] = {
    **{0x100 + n: np.where(LANES % 16 + n < 16, LANES + n, -1) for n in (1, 7, 15)},  # row_shl
    **{0x110 + n: np.where(n <= LANES % 16, LANES - n, -1) for n in (1, 4, 8, 15)},  # row_shr
    **{0x120 + n: LANES // 16 * 16 + (LANES - n) % 16 for n in (1, 8, 15)},  # row_ror
    **{0x150 + n: LANES // 16 * 16 + n for n in (0, 9, 15)},  # row_newbcast
    0x130: np.where(LANES < 63, LANES + 1, -1),  # wave_shl
    0x134: (LANES + 1) % 64,  # wave_rol
    0x138: LANES - 1,  # wave_shr
    0x13C: (LANES - 1) % 64,  # wave_ror
    0x140: LANES // 16 * 16 + 15 - LANES % 16,  # row_mirror
    0x141: LANES // 8 * 8 + 7 - LANES % 8,  # row_half_mirror
    0x142: np.where(LANES >= 16, LANES // 16 * 16 - 1, -1),  # row_bcast15
    0x143: np.where(LANES >= 32, 31, -1),  # row_bcast31
}
PRELUDE = """
#pragma clang diagnostic ignored "-Weverything"
using u32 = unsigned;
using u64 = unsigned long long;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
#define LANE (__builtin_amdgcn_workitem_id_x() & 63)
"""


class Lanes:
    """One kernel over a wave: `source` is its text, `model(x)` what it makes of 64 words."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.name = name
        self.lines: list[str] = []
        self.steps: list[tuple[Callable[[Words, Words], Words], Callable[[Words], Words] | None]] = []
        for _ in range(12):
            self._step()

    @property
    def source(self) -> str:
        body = "\n  ".join(self.lines)
        return (
            f'extern "C" __attribute__((global)) void {self.name}(const u32* in, u32* out) {{\n'
            f"  __attribute__((shared)) static u32 lds[64];\n  u32 x = in[LANE], y;\n  {body}\n  out[LANE] = x;\n}}\n"
        )

    def model(self, x: Words) -> Words:
        everyone = np.ones(64, bool)
        for step, condition in self.steps:
            active = everyone if condition is None else condition(x)
            if active.any():
                x = np.where(active, step(x, active), x)
        return x

    def _step(self) -> None:
        makers = (
            *(
                self._dpp,
                self._dpp,
                self._dpp,
                self._quad,
                self._bpermute,
                self._permute,
                self._swizzle,
                self._readlane,
            ),
            *(self._first, self._ballot, self._count, self._bitmode, self._lds_atomic, self._mix),
        )
        whole = (self._swap, self._transpose)
        bit = self.random.randrange(32)
        if self.random.random() < 0.2:
            text, step = self.random.choice(whole)()
            self.lines.append(text)
            self.steps.append((step, None))
        elif self.random.random() < 0.5:
            text, step = self.random.choice(makers)()
            self.lines.append(f"if (x >> {bit} & 1) {{ {text} }}")
            self.steps.append((step, lambda x: (x >> np.uint32(bit) & 1) != 0))
        else:
            text, step = self.random.choice(makers)()
            self.lines.append(text)
            self.steps.append((step, None))

    def _combine(self, text: str) -> tuple[str, Callable[[Words, Words], Words]]:
        """x and another lane's word together: a move that may become part of the operation."""
        kind = self.random.choice(("+", "^", "-", "min", "*", "="))
        if kind == "=":
            return f"x = {text};", lambda x, y: y
        if kind == "min":
            return f"y = {text}; x = x < y ? x : y;", np.minimum
        operations = {
            "+": np.add,
            "^": np.bitwise_xor,
            "-": np.subtract,
            "*": lambda x, y: x * (y | np.uint32(1)),
        }
        other = f"({text} | 1u)" if kind == "*" else text
        return f"x = x {kind} {other};", operations[kind]

    def _moved(self, control: int, source: Words) -> tuple[str, Callable[[Words, Words], Words]]:
        bound = self.random.random() < 0.5
        rows, banks = (
            (15, 15) if self.random.random() < 0.6 else (self.random.randrange(16), self.random.randrange(16))
        )
        old = self.random.choice(("x", "0u", "77u", "~0u"))
        text, combined = self._combine(
            f"u32(__builtin_amdgcn_update_dpp({old}, x, {control}, {rows}, {banks}, {str(bound).lower()}))"
        )

        def step(x: Words, active: Words) -> Words:
            before = {"x": x, "0u": np.zeros_like(x), "77u": np.full_like(x, 77), "~0u": ~np.zeros_like(x)}[
                old
            ]
            valid = (source >= 0) & active[source]
            enabled = (rows >> LANES // 16 & 1 != 0) & (banks >> LANES % 16 // 4 & 1 != 0) & (valid | bound)
            return combined(x, np.where(enabled, np.where(valid, x[source], 0), before).astype(np.uint32))

        return text, step

    def _dpp(self) -> tuple[str, Callable[[Words, Words], Words]]:
        control = self.random.choice(list(DPP))
        return self._moved(control, DPP[control])

    def _quad(self) -> tuple[str, Callable[[Words, Words], Words]]:
        control = self.random.randrange(256)
        return self._moved(control, LANES // 4 * 4 + (control >> 2 * (LANES % 4) & 3))

    def _gathered(
        self, text: str, source: Callable[[Words], Words]
    ) -> tuple[str, Callable[[Words, Words], Words]]:
        text, combined = self._combine(text)

        def step(x: Words, active: Words) -> Words:
            at = source(x)
            return combined(x, np.where(active[at], x[at], 0).astype(np.uint32))

        return text, step

    def _bpermute(self) -> tuple[str, Callable[[Words, Words], Words]]:
        return self._gathered("u32(__builtin_amdgcn_ds_bpermute(x >> 3, x))", lambda x: x >> 5 & 63)

    def _permute(self) -> tuple[str, Callable[[Words, Words], Words]]:
        key = self.random.randrange(64)
        return self._gathered(
            f"u32(__builtin_amdgcn_ds_permute(4 * (LANE ^ {key}), x))", lambda x: LANES ^ key
        )

    def _swizzle(self) -> tuple[str, Callable[[Words, Words], Words]]:
        control = self.random.randrange(256)
        return self._gathered(
            f"u32(__builtin_amdgcn_ds_swizzle(x, {0x8000 | control}))",
            lambda x: LANES // 4 * 4 + (control >> 2 * (LANES % 4) & 3),
        )

    def _bitmode(self) -> tuple[str, Callable[[Words, Words], Words]]:
        kept, ored, xored = (self.random.randrange(32) for _ in range(3))
        return self._gathered(
            f"u32(__builtin_amdgcn_ds_swizzle(x, {kept | ored << 5 | xored << 10}))",
            lambda x: LANES // 32 * 32 + ((LANES & kept | ored) ^ xored) % 32,
        )

    def _readlane(self) -> tuple[str, Callable[[Words, Words], Words]]:
        lane = self.random.randrange(64)
        # Of a lane that EXEC turns off, too: its register keeps the value.
        return f"x = x * 3 + u32(__builtin_amdgcn_readlane(x, {lane}));", lambda x, a: x * 3 + x[lane]

    def _first(self) -> tuple[str, Callable[[Words, Words], Words]]:
        return "x ^= u32(__builtin_amdgcn_readfirstlane(x + 1));", lambda x, a: x ^ (x + 1)[a.argmax()]

    def _ballot(self) -> tuple[str, Callable[[Words, Words], Words]]:
        bit = self.random.randrange(32)

        def step(x: Words, active: Words) -> Words:
            votes = int(((x >> bit & 1 != 0) & active) @ (np.uint64(1) << LANES.astype(np.uint64)))
            return x + np.uint32(votes % 2**32 * 5 % 2**32) + np.uint32(votes >> 32)

        return (
            f"{{ u64 votes = __builtin_amdgcn_ballot_w64(x >> {bit} & 1); x += u32(votes) * 5 + u32(votes >> 32); }}",
            step,
        )

    def _count(self) -> tuple[str, Callable[[Words, Words], Words]]:
        mask = self.random.getrandbits(64)
        below = np.array([bin(mask & ((1 << lane) - 1)).count("1") for lane in range(64)], np.uint32)
        return (
            f"x += __builtin_amdgcn_mbcnt_hi({mask >> 32}u, __builtin_amdgcn_mbcnt_lo({mask % 2**32}u, x >> 9));",
            lambda x, a: x + (x >> 9) + below,
        )

    def _lds_atomic(self) -> tuple[str, Callable[[Words, Words], Words]]:
        name, ufunc = self.random.choice(
            (("add", np.add), ("xor", np.bitwise_xor), ("max", np.maximum), ("or", np.bitwise_or))
        )
        bits = self.random.randrange(1, 6)

        def step(x: Words, active: Words) -> Words:
            lds = np.full(32, 5, np.uint32)
            ufunc.at(lds, (x >> 7 & (1 << bits) - 1)[active], x[active])
            return x + lds[x >> 7 & (1 << bits) - 1]

        return (
            f"y = x >> 7 & {(1 << bits) - 1}; for (u32 i = 0; i < 32; ++i) lds[i] = 5; "
            f"__atomic_fetch_{name}(lds + y, x, __ATOMIC_RELAXED); x += *(volatile u32*)(lds + y);",
            step,
        )

    def _mix(self) -> tuple[str, Callable[[Words, Words], Words]]:
        key = self.random.getrandbits(32) | 1
        return f"x = (x ^ x >> 15) * {key}u;", lambda x, a: (x ^ x >> 15) * np.uint32(key)

    def _swap(self) -> tuple[str, Callable[[Words, Words], Words]]:
        half = self.random.choice((16, 32))
        upper = LANES & half != 0

        def step(x: Words, active: Words) -> Words:
            # First register: its upper halves from the second's lower ones; second: the other way round.
            first, second = x, x * 7
            return np.where(upper, second[LANES ^ half], first) - 2 * np.where(
                upper, second, first[LANES ^ half]
            )

        return (
            f"{{ u32x2 s = __builtin_amdgcn_permlane{half}_swap(x, x * 7, false, false); x = s[0] - 2 * s[1]; }}",
            step,
        )

    def _transpose(self) -> tuple[str, Callable[[Words, Words], Words]]:
        return (
            'lds[LANE] = x; __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); __builtin_amdgcn_s_barrier(); '
            'x = lds[LANE % 8 * 8 + LANE / 8]; __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); '
            "__builtin_amdgcn_s_barrier();",
            lambda x, a: x[LANES % 8 * 8 + LANES // 8],
        )
