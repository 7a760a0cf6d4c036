"""The error types of the kernels' room. Every message is one line."""

from __future__ import annotations


class KernelError(Exception):
    """Base of all errors of this room."""


class ToolchainError(KernelError):
    """No device toolchain, or it refused a source."""


class EmulationError(KernelError):
    """A launch on the emulated device failed, or the emulator found the kernel wrong."""
