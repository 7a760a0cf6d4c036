"""Registers with roles: one map assigns the numbers, code speaks of roles."""

from __future__ import annotations

from dataclasses import dataclass

NAMED = {("s", 106, 2): "vcc", ("s", 106, 1): "vcc_lo", ("s", 107, 1): "vcc_hi", ("s", 124, 1): "m0",
         ("s", 126, 2): "exec", ("s", 126, 1): "exec_lo", ("s", 127, 1): "exec_hi"}  # fmt: skip


@dataclass(frozen=True)
class Register:
    """`count` consecutive 32-bit registers of a file: "v" vector, "a" accumulation, "s" scalar."""

    file: str
    first: int
    count: int
    role: str = ""

    def __getitem__(self, index: int | slice) -> Register:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.count)
            if step != 1 or stop <= start:
                raise IndexError(
                    f"{self.role or self}: [{index.start}:{index.stop}] of {self.count} registers"
                )
            return Register(self.file, self.first + start, stop - start, self.role)
        if not 0 <= index < self.count:
            raise IndexError(f"{self.role or self}: register {index} of {self.count}")
        return Register(self.file, self.first + index, 1, self.role)

    def __str__(self) -> str:
        named = NAMED.get((self.file, self.first, self.count))
        if named:
            return named
        if self.count == 1:
            return f"{self.file}{self.first}"
        return f"{self.file}[{self.first}:{self.first + self.count - 1}]"

    def units(self) -> list[tuple[str, int]]:
        """The single registers, as keys for data-flow."""
        return [(self.file, self.first + i) for i in range(self.count)]


VCC = Register("s", 106, 2, "vcc")
M0 = Register("s", 124, 1, "m0")
EXEC = Register("s", 126, 2, "exec")


class RegisterFile:
    """Hands out registers by role and knows which are taken."""

    def __init__(self, file: str, size: int, reserved: int = 0) -> None:
        self.file, self.size = file, size
        self._free = set(range(reserved, size))
        self.high = reserved
        self.roles: list[Register] = []

    def take(self, role: str, count: int = 1, align: int = 0) -> Register:
        """The lowest `count` consecutive free registers; pairs and wider are even-aligned unless `align` says more."""
        step = align or (2 if count > 1 else 1)
        if self.file == "s" and not align:
            step = min(4, 1 << (count - 1).bit_length())
        for first in range(0, self.size - count + 1, step):
            if all(first + i in self._free for i in range(count)):
                self._free -= set(range(first, first + count))
                self.high = max(self.high, first + count)
                taken = Register(self.file, first, count, role)
                self.roles.append(taken)
                return taken
        raise ValueError(
            f"{self.file} registers: no {count} free ones for {role!r}; {len(self._free)} of {self.size} are free"
        )

    def release(self, *registers: Register) -> None:
        for register in registers:
            self._free |= set(range(register.first, register.first + register.count))

    def table(self) -> str:
        """One line per role: registers and what they hold."""
        return "\n".join(f"{r!s:>12}  {r.role}" for r in sorted(self.roles, key=lambda r: r.first))
