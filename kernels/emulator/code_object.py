"""What is in a gfx950 code object: its kernels, their arguments, their instructions."""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.emulator import _native
from zyfa_ort.kernels.errors import EmulationError


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel as the metadata has it; `offset` and `size` in bytes, `kind` global_buffer or by_value."""

    name: str
    kind: str
    offset: int
    size: int

    @property
    def is_buffer(self) -> bool:
        return self.kind in ("global_buffer", "dynamic_shared_pointer")

    @property
    def is_hidden(self) -> bool:
        """Added by the compiler and filled in by the launch."""
        return self.kind.startswith("hidden_")

    def label(self, index: int) -> str:
        return f"argument {index} '{self.name}'" if self.name else f"argument {index}"


@dataclass(frozen=True)
class Kernel:
    """A kernel of a code object. Sizes in bytes; `vgprs` and `agprs` per work-item, `max_workgroup` in work-items."""

    name: str
    arguments: tuple[Argument, ...]
    kernarg_bytes: int
    lds_bytes: int
    private_bytes: int
    vgprs: int
    accum_offset: int
    max_workgroup: int

    @property
    def agprs(self) -> int:
        return max(0, self.vgprs - self.accum_offset)

    @property
    def parameters(self) -> tuple[Argument, ...]:
        """The arguments that the caller gives."""
        return tuple(argument for argument in self.arguments if not argument.is_hidden)

    @property
    def waves_per_simd(self) -> int:
        """How many waves the registers allow; LDS may allow fewer."""
        return min(8, 512 // self.vgprs)

    def explicit_bytes(self) -> int:
        """The least that packed arguments must have."""
        return max((argument.offset + argument.size for argument in self.parameters), default=0)


@dataclass(frozen=True)
class Line:
    """An instruction: bytes from the kernel's entry, the machine code, the assembler's text, where it may branch to."""

    offset: int
    dwords: tuple[int, ...]
    text: str
    target: int | None = None

    def __str__(self) -> str:
        code = " ".join(f"{dword:08x}" for dword in self.dwords)
        text = f"+{self.offset:#06x}  {code:<35}  {self.text}"
        return text if self.target is None else f"{text}  -> +{self.target:#x}"


def kernels(code_object: bytes) -> list[Kernel]:
    """The kernels of a code object. Raises EmulationError when it is none, or not for gfx950."""
    try:
        found = _native.kernels(code_object)
    except _native.EmulatorError as error:
        raise EmulationError(str(error)) from None
    return [
        Kernel(
            name=row["name"],
            arguments=tuple(Argument(*argument) for argument in row["arguments"]),
            kernarg_bytes=row["kernarg_bytes"],
            lds_bytes=row["lds_bytes"],
            private_bytes=row["private_bytes"],
            vgprs=row["vgprs"],
            accum_offset=row["accum_offset"],
            max_workgroup=row["max_workgroup"],
        )
        for row in found
    ]


def find_kernel(code_object: bytes, name: str) -> Kernel:
    """The kernel of this name. Raises EmulationError that lists those there are."""
    found = kernels(code_object)
    for kernel in found:
        if kernel.name == name:
            return kernel
    names = ", ".join(f"'{kernel.name}'" for kernel in found) or "none"
    raise EmulationError(f"code object: no kernel '{name}'; it has {names}")


def disassemble(code_object: bytes, kernel: str) -> list[Line]:
    """The instructions of a kernel. Bytes that are none appear as a comment with the reason.

    Raises EmulationError: no code object, no such kernel.
    """
    try:
        rows = _native.listing(code_object, kernel)
    except _native.EmulatorError as error:
        raise EmulationError(str(error)) from None
    return [Line(offset, tuple(dwords), text, target) for offset, dwords, text, target in rows]
