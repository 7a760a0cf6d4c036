"""An emulated device: memory that several launches share, and the launch itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from zyfa_ort.kernels.emulator import _native
from zyfa_ort.kernels.emulator.arguments import Value, check_block, checked_array, pack
from zyfa_ort.kernels.emulator.code_object import Kernel, find_kernel
from zyfa_ort.kernels.emulator.findings import Finding, Result
from zyfa_ort.kernels.errors import EmulationError

Arguments = Sequence[Value] | Mapping[str, "np.ndarray[Any, Any]"] | bytes
ACCUMULATIONS = ("exact", "sequential", "pairwise")
BYTE_ROUNDINGS = ("nearest_even", "truncate")
MAX_INSTRUCTIONS = 200_000_000


class Device:
    """An emulated MI355X. Arrays that a launch was given stay at their device address until they are freed.

    The device works on the arrays' own memory: what a kernel writes is in the array when launch() returns.
    Not for several threads at once.
    """

    def __init__(self) -> None:
        self._native = _native.Device()
        self._modules: dict[bytes, int] = {}
        self._kernels: dict[tuple[int, str], Kernel] = {}
        # By identity; the arrays are kept, so that an identity cannot pass to another one.
        self._buffers: dict[int, tuple[np.ndarray[Any, Any], int]] = {}

    def address(self, array: np.ndarray[Any, Any], name: str = "buffer") -> int:
        """The device address of an array, for kernels that take addresses inside of structs.

        A read-only array becomes memory that kernels cannot write. Raises EmulationError: not C-contiguous, dtype object.
        """
        known = self._buffers.get(id(array))
        if known is not None:
            return known[1]
        data = checked_array(array, name)
        borrow = self._native.borrow if data.flags.writeable else self._native.borrow_read_only
        address = int(borrow(data, name))
        self._buffers[id(array)] = (array, address)
        return address

    def free(self, array: np.ndarray[Any, Any]) -> None:
        """Forgets an array: its address is an error from now on."""
        known = self._buffers.pop(id(array), None)
        if known is None:
            raise EmulationError("free: the array is no buffer of this device")
        self._native.free(known[1])

    def launch(
        self,
        code_object: bytes,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Arguments,
        *,
        kernarg: Callable[[list[int]], bytes] | None = None,
        report_only: bool = False,
        dynamic_lds: int = 0,
        check: bool = True,
        order_seed: int = 0,
        max_instructions: int = MAX_INSTRUCTIONS,
        threads: int = 1,
        accumulation: str = "exact",
        byte_rounding: str = "nearest_even",
        timing: dict[str, Any] | None = None,
    ) -> Result:
        """Runs a kernel and waits for its end. See launch() of this package for arguments and errors."""
        if accumulation not in ACCUMULATIONS:
            raise EmulationError(f"accumulation: expected {', '.join(ACCUMULATIONS)}, got '{accumulation}'")
        if byte_rounding not in BYTE_ROUNDINGS:
            raise EmulationError(
                f"byte_rounding: expected {', '.join(BYTE_ROUNDINGS)}, got '{byte_rounding}'"
            )
        options = {
            "dynamic_lds": _count("dynamic_lds", dynamic_lds, 0),
            "check": bool(check),
            "order_seed": _count("order_seed", order_seed, 0, 2**64 - 1),
            "max_instructions": _count("max_instructions", max_instructions, 1, 2**64 - 1),
            "threads": _count("threads", threads, 1),
            "accumulation": accumulation,
            "byte_rounding": byte_rounding,
        }
        if timing is not None:
            options["timing"] = timing
        sizes = _sizes("grid", grid), _sizes("block", block)
        try:
            module = self._load(code_object)
            packed = self._pack(self._kernel(module, code_object, kernel), args, kernarg)
            raw = self._native.launch(module, kernel, *sizes, packed, **options)
        except _native.EmulatorError as error:
            raise EmulationError(str(error)) from None
        findings = tuple(Finding(**{**f, "workgroup": tuple(f["workgroup"])}) for f in raw.pop("findings"))
        result = Result(findings, raw.pop("instructions"), raw.pop("workgroups"), raw)
        if result.errors and not report_only:
            raise EmulationError("; ".join(str(f) for f in result.errors[:5]))
        return result

    def _load(self, code_object: bytes) -> int:
        if code_object not in self._modules:
            self._native.load(code_object)
            self._modules[code_object] = len(self._modules)
        return self._modules[code_object]

    def _kernel(self, module: int, code_object: bytes, name: str) -> Kernel:
        if (module, name) not in self._kernels:
            self._kernels[module, name] = find_kernel(code_object, name)
        return self._kernels[module, name]

    def _pack(self, kernel: Kernel, args: Arguments, kernarg: Callable[[list[int]], bytes] | None) -> bytes:
        if kernarg is not None:
            named = args.items() if isinstance(args, Mapping) else enumerate(args)
            return check_block(
                kernel, kernarg([self.address(_array(name, a), str(name)) for name, a in named])
            )
        if isinstance(args, bytes):
            return check_block(kernel, args)
        if isinstance(args, Mapping):
            args = _by_name(kernel, args)
        return pack(kernel, args, self.address)


def _by_name(kernel: Kernel, args: Mapping[str, Any]) -> list[Value]:
    names = [parameter.name for parameter in kernel.parameters]
    if sorted(names) != sorted(args):
        raise EmulationError(
            f"kernel '{kernel.name}': expected arguments named {', '.join(names)}, got {', '.join(args) or 'none'}"
        )
    return [args[name] for name in names]


def _array(name: object, value: object) -> np.ndarray[Any, Any]:
    if not isinstance(value, np.ndarray):
        raise EmulationError(f"kernarg: expected only arrays among the arguments, got {name}={value!r}")
    return value


def _count(name: str, value: int, least: int, most: int = 2**32 - 1) -> int:
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        raise EmulationError(f"{name}: expected an integer of at least {least}, got {value!r}")
    return int(value)


def _sizes(name: str, sizes: int | Sequence[int]) -> tuple[int, int, int]:
    given = tuple(sizes) if isinstance(sizes, Sequence) else (sizes,)
    if not 1 <= len(given) <= 3:
        raise EmulationError(f"{name}: expected 1 to 3 sizes, got {given}")
    x, y, z = (*(_count(name, size, 1) for size in given), 1, 1)[:3]
    return x, y, z
