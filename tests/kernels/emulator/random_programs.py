"""Random programs in the C++ of random_programs.hpp, for gfx950 and for the host, from a seed."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import numpy as np
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.asm.toolchain import run, toolchain

PRELUDE = Path(__file__).with_name("random_programs.hpp")
HOST = (
    *("-x", "c++", "-std=c++17", "-O1", "-fPIC", "-c", "-ffp-contract=off", "-nostdinc"),
    *("-mavx2", "-mfma", "-mf16c", "-Xclang", "-ffloat16-excess-precision=none"),
    *("-Xclang", "-fbfloat16-excess-precision=none"),
)
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
VECTORS = {
    **{"i16x2": "i16", "u16x2": "u16", "f16x2": "f16", "f16x4": "f16", "bf16x2": "bf16", "f32x2": "f32"},
    **{"f32x4": "f32", "f64x2": "f64", "i32x2": "i32", "u8x4": "u8", "u64x2": "u64"},
}
# Name -> operands, all of the result's type.
INTEGER_OPS = {
    **dict.fromkeys(("negated", "inverted", "magnitude", "ones", "leading", "trailing", "leading_signs"), 1),
    **dict.fromkeys(("reversed", "swapped"), 1),
    **dict.fromkeys(("add", "sub", "mul", "band", "bor", "bxor", "bandn", "born", "bxnor", "quotient"), 2),
    **dict.fromkeys(("remainder", "shl", "shr", "lshr", "rotate", "least_of", "most_of"), 2),
    **dict.fromkeys(("add_saturated", "sub_saturated", "distance", "extract_signed", "multiply_high"), 2),
    **dict.fromkeys(("funnel", "clamped", "median", "most_of_three", "least_of_three", "sad"), 3),
    **dict.fromkeys(("multiply_add", "add_three", "shift_add", "add_shift", "shift_or", "and_or"), 3),
    **dict.fromkeys(("insert", "parity", "majority", "extract"), 3),
}
WORD_OPS = {"multiply_add_24": 3, "multiply_high_24": 2}
FLOAT_OPS = {
    **dict.fromkeys(("fneg", "fabs", "square_root", "down", "up", "cut", "even", "nearest", "fraction"), 1),
    **dict.fromkeys(("reciprocal", "doubled"), 1),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fdiv", "fminimum", "fmaximum", "fleast", "fmost"), 2),
    **dict.fromkeys(("fmin_same", "fmax_same", "with_sign", "saturated", "scaled_half", "fsquare"), 2),
    **dict.fromkeys(("fused", "fused", "fminimum_of_three", "fmaximum_of_three", "fmedian", "muladd"), 3),
}
INTEGER_VECTOR_OPS = {
    **dict.fromkeys(("least_of_v", "most_of_v", "add_saturated", "sub_saturated"), 2),
    **dict.fromkeys(("vadd", "vsub", "vmul", "vand", "vor", "vxor"), 2),
    **dict.fromkeys(("vmuladd",), 3),
}
FLOAT_VECTOR_OPS = {
    **dict.fromkeys(("fneg", "down", "up", "cut", "even", "doubled"), 1),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fminimum", "fmaximum"), 2),
    **dict.fromkeys(("fused",), 3),
}
# No zero: clang 22 makes ceil(-x) of ceil(0 - x).
LITERALS = ("1.0f", "-1.0f", "0.5f", "2.0f", "4.0f", "0.1f", "65504.0f", "3e-5f", "1e30f", "-7.5f")
# Of the words that a work-item writes the first are results, the others memory it works in.
WORDS_IN, WORDS_OUT, RESULTS = 16, 64, 23
SHARED = 64  # words that atomics of all work-items meet in
EDGES = {
    "f16": (
        0,
        0x8000,
        1,
        0x8001,
        0x3FF,
        0x400,
        0x3C00,
        0xBC00,
        0x3BFF,
        0x3C01,
        0x7BFF,
        0xFBFF,
        0x7C00,
        0xFC00,
        0x7E00,
    ),
    "f32": (
        *(
            0,
            0x80000000,
            1,
            0x80000001,
            0x7FFFFF,
            0x800000,
            0x807FFFFF,
            0x3F800000,
            0xBF800000,
            0x3F7FFFFF,
            0x3F800001,
        ),
        *(
            0x7F7FFFFF,
            0xFF7FFFFF,
            0x7F800000,
            0xFF800000,
            0x7FC00000,
            0x4B000000,
            0x4AFFFFFF,
            0xCB000001,
            0x3EFFFFFF,
        ),
        *(
            0x3F000000,
            0xBF000000,
            0x3FC00000,
            0x40200000,
            0x4F000000,
            0xCF000000,
            0x4F7FFFFF,
            0x5F000000,
            0x477FE000,
        ),
        *(
            0x477FF000,
            0x33000000,
            0x33000001,
            0x387FC000,
            0x387FE000,
            0x42FE0000,
            0x437F0000,
            0x7EFFFFFF,
            0x00FFFFFF,
        ),
    ),
    "f64": (
        *(0, 1 << 63, 1, (1 << 63) + 1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, 0xBFF << 52, (0x3FF << 52) - 1),
        *((0x3FF << 52) + 1, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48),
        *(0x433 << 52, 0x432FFFFFFFFFFFFF, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0xC1E0000000000000),
        *(0x43DFFFFFFFFFFFFF, 0x43E0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x36A0000000000000),
        *(0x3690000000000000, 0x3690000000000001, 0x380FFFFFC0000000, 0x3FE0000000000000, 0x4004000000000000),
    ),
    "u64": (
        *(0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF),
        *(
            0x80000000,
            0xFFFFFFFF,
            1 << 32,
            (1 << 63) - 1,
            1 << 63,
            (1 << 64) - 1,
            (1 << 64) - 2,
            (1 << 64) - 128,
        ),
        *(
            0xFFFFFF,
            0x1000000,
            0x7FFFFF,
            0x800000,
            0xFFFFFFFF80000000,
            0xFFFFFFFF7FFFFFFF,
            0xFFFFFFFFFFFF8000,
        ),
    ),
}


class Program:
    """One function of random statements over typed variables. `source` is its text."""

    def __init__(self, seed: int, name: str, statements: int = 24) -> None:
        self.random = random.Random(seed)
        self.name = name
        self.types = self._some_types()
        self.pool: dict[str, list[str]] = {one: [] for one in (*INTEGERS, *FLOATS, *VECTORS)}
        self.lines: list[str] = []
        self.before: list[str] = []
        self.count = 0
        self.depth = 0
        self.in_function = False
        self.lazy = self.random.random() < 0.25
        self.uses_lds = False
        self._functions()
        for one in self.types:
            for _ in range(3):
                self._declare(one, self._input(one))
        for _ in range(statements):
            self._statement()
        self._results()

    @property
    def source(self) -> str:
        mode = " __attribute__((optnone, noinline))" if self.lazy else " inline"
        text = "\n".join(self.before)
        body = "\n".join(f"  {line}" for line in self.lines)
        return (
            f"{text}\nDEVICE static{mode} void {self.name}(const u64* in, u64* out, u64* shared, u32 item) {{\n"
            f"{body}\n}}\nRUN({self.name})\n"
        )

    def _some_types(self) -> list[str]:
        chosen = self.random.sample(INTEGERS, 3) + self.random.sample(FLOATS, 2)
        chosen += self.random.sample(list(VECTORS), 2)
        return list(dict.fromkeys([*chosen, "u32"]))

    def pick(self, options: Any) -> Any:
        return self.random.choice(list(options))

    def _new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def _declare(self, kind: str, value: str) -> str:
        name = self._new()
        self.lines.append(f"{kind} {name} = {value};")
        self.pool[kind].append(name)
        return name

    def _input(self, kind: str) -> str:
        word = self.random.randrange(WORDS_IN)
        if kind in VECTORS:
            element, size = VECTORS[kind], int(kind[-1])
            return f"{kind}{{{', '.join(self._input(element) for _ in range(size))}}}"
        shift = self.pick((0, 0, 0, 8, 16, 32)) if kind != "f64" else 0
        return f"from_bits<{kind}>(in[{word}] >> {shift})"

    def _literal(self, kind: str) -> str:
        if kind in VECTORS:
            return f"{kind}({self._literal(VECTORS[kind])})"
        if kind in FLOATS:
            return f"{kind}({self.pick(LITERALS)})"
        value = self.pick(EDGES["u64"]) if self.random.random() < 0.7 else self.random.getrandbits(64)
        return f"{kind}({value}ull)"

    def _value(self, kind: str, depth: int) -> str:
        """An expression of this type."""
        if depth <= 0 or self.random.random() < 0.15:
            if self.pool[kind] and self.random.random() < 0.85:
                return str(self.pick(self.pool[kind]))
            return self._literal(kind)
        if kind in VECTORS:
            return self._vector(kind, depth)
        chance = self.random.random()
        if chance < 0.08:
            return f"blend<{kind}>({self._condition(depth - 1)}, {self._values(kind, depth - 1, 2)})"
        if chance < 0.22:
            return self._conversion(kind, depth)
        if chance < 0.27:
            owners = [one for one in self.types if VECTORS.get(one) == kind]
            if owners:
                owner = self.pick(owners)
                return f"({self._value(owner, depth - 1)})[{self.random.randrange(int(owner[-1]))}]"
        if kind in INTEGERS:
            return self._integer(kind, depth)
        return self._float(kind, depth)

    def _values(self, kind: str, depth: int, count: int) -> str:
        return ", ".join(self._value(kind, depth) for _ in range(count))

    def _integer(self, kind: str, depth: int) -> str:
        chance = self.random.random()
        if chance < 0.05:
            return f"divided_by<{self.pick(EDGES['u64']) or 5}ull, {kind}>({self._value(kind, depth - 1)})"
        if chance < 0.1:
            modulus = self.random.getrandbits(self.pick((3, 7, 16, 32, 64))) or 5
            return f"modulo<{modulus}ull, {kind}>({self._value(kind, depth - 1)})"
        if chance < 0.15:
            return f"bytes_of<{self.random.getrandbits(31)}, {kind}>({self._values(kind, depth - 1, 2)})"
        table = INTEGER_OPS | (WORD_OPS if kind in ("i32", "u32") else {})
        return self._call(table, kind, depth)

    def _float(self, kind: str, depth: int) -> str:
        if kind in ("f32", "f64"):
            chance = self.random.random()
            if chance < 0.06:
                return f"scaled<{kind}>({self._value(kind, depth - 1)}, {self._value('i32', depth - 1)})"
            if chance < 0.1:
                return f"mantissa<{kind}>({self._value(kind, depth - 1)})"
        return self._call(FLOAT_OPS, kind, depth)

    def _call(self, table: dict[str, int], kind: str, depth: int) -> str:
        name = self.pick(table)
        return f"{name}<{kind}>({self._values(kind, depth - 1, table[name])})"

    def _vector(self, kind: str, depth: int) -> str:
        element, size = VECTORS[kind], int(kind[-1])
        chance = self.random.random()
        if chance < 0.12:
            return f"{kind}{{{self._values(element, depth - 1, size)}}}"
        if chance < 0.2:
            order = ", ".join(str(self.random.randrange(2 * size)) for _ in range(size))
            return f"__builtin_shufflevector({self._values(kind, depth - 1, 2)}, {order})"
        return self._call(FLOAT_VECTOR_OPS if element in FLOATS else INTEGER_VECTOR_OPS, kind, depth)

    def _conversion(self, kind: str, depth: int) -> str:
        source = self.pick([one for one in self.types if one not in VECTORS])
        value = self._value(source, depth - 1)
        if source in FLOATS and kind in FLOATS:
            return f"convert<{kind}, {source}>({value})"
        if source in FLOATS:
            if source in ("f32", "f64") and kind == "i32" and self.random.random() < 0.3:
                return f"exponent<{source}>({value})"
            return f"to_integer<{kind}, {source}>({value})"
        if kind in FLOATS:
            return f"to_float<{kind}, {source}>({value})"
        return f"{kind}({value})"

    def _condition(self, depth: int) -> str:
        chance = self.random.random()
        scalars = [one for one in self.types if one not in VECTORS]
        if depth > 0 and chance < 0.25:
            return f"({self._condition(depth - 1)} {self.pick(('&&', '||', '^', '&'))} {self._condition(depth - 1)})"
        if chance < 0.3:
            return f"!{self._condition(depth - 1)}"
        kind = self.pick(scalars)
        if kind in FLOATS and chance < 0.4:
            mask = self.random.randrange(1, 1 << 8) << 2  # no NaN: which kind one is, is free
            return f"is_class<{mask}, {kind}>({self._value(kind, depth - 1)})"
        relation = self.pick(("<", "<=", ">", ">=", "==", "!="))
        left, right = self._value(kind, depth - 1), self._value(kind, depth - 1)
        if kind in FLOATS and chance < 0.5:
            return f"!({left} {relation} {right})"
        return f"({left} {relation} {right})"

    def _assign(self) -> None:
        kind = self.pick(self.types)
        value = self._value(kind, self.random.randint(1, 4))
        if self.depth == 0 and self.random.random() < 0.5:
            self._declare(kind, value)
        else:
            self.lines.append(f"{self.pick(self.pool[kind])} = {value};")

    def _block(self, statements: int) -> None:
        kept = {kind: len(names) for kind, names in self.pool.items()}
        self.depth += 1
        for _ in range(statements):
            self._statement()
        self.depth -= 1
        for kind, names in self.pool.items():
            del names[kept[kind] :]

    def _statement(self) -> None:
        chance = self.random.random()
        if chance < 0.55 or self.depth > 2:
            self._assign()
        elif chance < 0.66:
            self.lines.append(f"if ({self._condition(2)}) {{")
            self._block(self.random.randint(1, 3))
            if self.random.random() < 0.5:
                self.lines.append("} else {")
                self._block(self.random.randint(1, 3))
            self.lines.append("}")
        elif chance < 0.74:
            i = self._new()
            trips = f"u32({self._value('u32', 2)}) & {self.pick((3, 7, 15))}"
            self.lines.append(f"for (u32 {i} = 0, n = {trips}; {i} < n; ++{i}) {{")
            self._block(self.random.randint(1, 2))
            if self.random.random() < 0.3:
                self.lines.append(f"if ({self._condition(1)}) {self.pick(('break', 'continue'))};")
            self.lines.append("}")
        elif chance < 0.8:
            self.lines.append(f"switch (u32({self._value('u32', 2)}) & 7) {{")
            for case in self.random.sample(range(8), 4):
                self.lines.append(f"case {case}: {{")
                self._block(1)
                # No falling through: clang 22 loses the assignment of a case that two paths lead to.
                self.lines.append("} break;")
            self.lines.append("default: break; }")
        elif chance < 0.84:
            self._array()
        elif chance < 0.87 and not self.in_function:
            self._pointer()
        elif chance < 0.91:
            self._table()
        elif chance < 0.94 and not self.in_function:
            self._memory()
        elif chance < 0.97 and not self.in_function:
            self._atomic()
        elif self.functions:
            name, kind, kinds = self.pick(self.functions)
            values = ", ".join(self._value(one, 1) for one in kinds)
            self.lines.append(f"{self.pick(self.pool[kind])} = {name}({values});")
        else:
            self._assign()

    def _array(self) -> None:
        """A private array, or one in LDS, written and read at computed places."""
        kind = self.pick(self.types)
        size, name = self.pick((2, 4, 8, 16, 32)), self._new()
        lds = self.random.random() < 0.4 and not self.in_function
        self.lines.append("{")
        if lds:
            self.lines.append(f"LDS({kind}, {name}, {size});")
        else:
            self.lines.append(f"{kind} {name}[{size}];")
        if self.random.random() < 0.5:
            self.lines.append(f"for (u32 i = 0; i < {size}; ++i) {name}[i] = {self._value(kind, 1)};")
        else:
            for i in range(size):
                self.lines.append(f"{name}[{i}] = {self._value(kind, 1)};")
        for _ in range(self.random.randint(1, 3)):
            self.lines.append(f"{name}[u32({self._value('u32', 2)}) % {size}] = {self._value(kind, 2)};")
        for _ in range(self.random.randint(1, 2)):
            self.lines.append(
                f"{self.pick(self.pool[kind])} = {name}[u32({self._value('u32', 2)}) % {size}];"
            )
        self.lines.append("}")

    def _pointer(self) -> None:
        """A pointer that may lead to private memory, LDS or global memory, followed here or in a function."""
        kind = self.pick([one for one in self.types if one != "u8x4"])
        private, lds, to, poke = self._new(), self._new(), self._new(), f"{self.name}_p{self.count}"
        count = 2
        # 32 bytes for each type: memory has one type only.
        place = RESULTS + 1 + 4 * (self.types.index(kind) + 1)
        if self.random.random() < 0.5:
            self.before.append(
                f"CALLED {kind} {poke}({kind}* p, {kind} v, u32 at) "
                f"{{ {kind} old = p[at]; p[at] = v; return at > 0 ? old : p[{count - 1}]; }}"
            )
            touch = f"{poke}({to}, {self._value(kind, 2)}, u32({self._value('u32', 1)}) % {count})"
        else:
            at = f"u32({self._value('u32', 1)}) % {count}"
            touch = f"({to}[{at}] = {self._value(kind, 2)}, {to}[u32({self._value('u32', 1)}) % {count}])"
        self.lines += [
            "{",
            f"{kind} {private}[{count}] = {{{self._values(kind, 1, count)}}};",
            f"LDS({kind}, {lds}, {count});",
            *(f"{lds}[{i}] = {self._value(kind, 1)};" for i in range(count)),
            f"{kind}* {to} = {self._condition(1)} ? {private} : ({kind}*){lds};",
            f"if ({self._condition(1)}) {to} = ({kind}*)(out + {place});",
            f"{self.pick(self.pool[kind])} = {touch};",
            f"{self.pick(self.pool[kind])} = {to}[{count - 1}];",
            "}",
        ]

    def _table(self) -> None:
        kind = self.pick([one for one in self.types if one in INTEGERS or one in ("f32", "f64")])
        size, name = self.pick((3, 5, 8, 16, 40)), f"{self.name}_t{self.count}"
        self.count += 1
        values = ", ".join(self._literal(kind) for _ in range(size))
        self.before.append(f"DEVICE static const {kind} {name}[{size}] = {{{values}}};")
        self.lines.append(f"{self.pick(self.pool[kind])} = {name}[u32({self._value('u32', 2)}) % {size}];")

    def _memory(self) -> None:
        """Inputs at computed addresses, of any width; results as bytes and halves."""
        kind = self.pick([one for one in self.types if one in INTEGERS])
        if self.random.random() < 0.6:
            aligned = f"u64({self._value('u32', 2)}) % ({8 * WORDS_IN} / sizeof({kind}))"
            base = f"in + {WORDS_IN} - i64({WORDS_IN})"
            self.lines.append(f"{self.pick(self.pool[kind])} = *((const {kind}*)({base}) + {aligned});")
        else:
            name = self._new()
            place = RESULTS + 1 + INTEGERS.index(kind) // 2  # a signed and an unsigned type may share memory
            self.lines.append(f"volatile {kind}* {name} = (volatile {kind}*)(out + {place});")
            self.lines.append(f"*{name} = {self._value(kind, 2)}; {self.pick(self.pool[kind])} = *{name};")

    def _atomic(self) -> None:
        operations, kinds = ("add", "and", "or", "xor", "min", "max"), ("u32", "i32", "u64", "i64")
        how, kind = self.pick(operations), self.pick(kinds)
        # One operation and one type per word, so that the order is free.
        index = kinds.index(kind) * len(operations) + operations.index(how)
        value = self._value(kind, 2) if kind in self.types else f"{kind}({self._value('u32', 2)})"
        self.lines.append(f"__atomic_fetch_{how}(({kind}*)(shared + {index}), {value}, __ATOMIC_RELAXED);")

    def _functions(self) -> None:
        """Functions that stay calls, with arguments of several types."""
        self.functions: list[tuple[str, str, list[str]]] = []
        for number in range(self.random.randint(0, 2)):
            kind = self.pick(self.types)
            kinds = [self.pick(self.types) for _ in range(self.random.randint(1, 6))]
            keep, self.lines, self.in_function = self.lines, [], True
            for i, one in enumerate(kinds):
                self.pool[one].append(f"a{i}")
            for one in self.types:
                self._declare(one, self._literal(one))
            self._block(3)
            result = self._value(kind, 3)
            body = " ".join(self.lines)
            listed = ", ".join(f"{one} a{i}" for i, one in enumerate(kinds))
            name = f"{self.name}_f{number}"
            self.before.append(f"CALLED {kind} {name}({listed}) {{ {body} return {result}; }}")
            self.lines, self.in_function = keep, False
            self.pool = {one: [] for one in self.pool}
            self.functions.append((name, kind, kinds))

    def _results(self) -> None:
        values = []
        for kind in self.types:
            for name in self.pool[kind]:
                if kind in VECTORS:
                    values += [f"bits_of<{VECTORS[kind]}>({name}[{i}])" for i in range(int(kind[-1]))]
                else:
                    values.append(f"bits_of<{kind}>({name})")
        for i in range(RESULTS):
            mine = values[i::RESULTS]
            if mine:
                # No cancelling: every value of the word counts with a weight of its own.
                total = " + ".join(f"{2 * j + 1}ull * {value}" for j, value in enumerate(mine))
                self.lines.append(f"out[{i}] = {total};")


DEVICE_RUN = """
#define LDS(type, name, size) __attribute__((shared)) static type name##_all[64 * size]; \\
  type* name = (type*)name##_all + size * __builtin_amdgcn_workitem_id_x()
#define RUN(name) extern "C" __attribute__((global)) void run_##name(const u64* in, u64* out, u64* shared) { \\
  const u32 item = 64 * __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workitem_id_x(); \\
  name(in + WORDS_IN * item, out + WORDS_OUT * item, shared, item); }
"""
HOST_RUN = """
#define LDS(type, name, size) type name[size]
#define RUN(name) extern "C" void run_##name(const u64* in, u64* out, u64* shared, u32 items) { \\
  for (u32 item = 0; item < items; ++item) \\
    name(in + WORDS_IN * item, out + WORDS_OUT * item, shared, item); }
"""


def text_of(programs: list[Program], run_macro: str) -> str:
    sizes = f"#define WORDS_IN {WORDS_IN}\n#define WORDS_OUT {WORDS_OUT}\n"
    return PRELUDE.read_text() + sizes + run_macro + "".join(one.source for one in programs)


def host_library(programs: list[Program], folder: Path, options: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The programs for this machine."""
    source, obj, library = (folder / f"host{suffix}" for suffix in (".cc", ".o", ".so"))
    source.write_text(text_of(programs, HOST_RUN))
    tools = toolchain()
    for command in (
        [*tools.clang, "--target=x86_64-linux-gnu", *HOST, *options, source.name, "-o", obj.name],
        [*tools.lld, "-shared", obj.name, "-o", library.name],
    ):
        done = run(command, folder, "host")
        assert done.returncode == 0, done.stderr
    ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(library))


def device_code(programs: list[Program]) -> bytes:
    return compile_hip(text_of(programs, DEVICE_RUN), "random")


def inputs(items: int, seed: int) -> np.ndarray:
    """Words of which each is an edge case of some type, or random; several narrow ones packed into one."""
    chance = random.Random(seed)

    def word() -> int:
        kind = chance.choice(("f16", "f16", "f32", "f32", "f64", "f64", "u64", "u64", "bits", "small"))
        if kind == "bits":
            return chance.getrandbits(64)
        if kind == "small":
            return int(np.float64(chance.choice((1, -1, 3.5, 100, 1e5)) * chance.random()).view(np.uint64))
        if kind == "f16":
            return sum(chance.choice(EDGES["f16"]) << (16 * i) for i in range(4))
        if kind == "f32":
            return sum(chance.choice(EDGES["f32"]) << (32 * i) for i in range(2))
        value = chance.choice(EDGES[kind])
        return (value + (chance.randint(-1, 1) if kind == "u64" else 0)) % 2**64

    return np.array([[word() for _ in range(WORDS_IN)] for _ in range(items)], np.uint64)
