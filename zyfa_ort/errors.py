"""The error types of the package. Every message is one line: the thing, what was expected, what was found, what to do."""

from __future__ import annotations


class ZyfaError(Exception):
    """Base of all errors this package raises on purpose."""


class LibraryError(ZyfaError):
    """The compiled library is missing or cannot be loaded."""


class DeviceError(ZyfaError):
    """The device that was asked for is not there."""


class HipError(DeviceError):
    """A call of the device's runtime failed."""


class PlacementError(ZyfaError):
    """Nodes of a model do not run where they were asked to."""


class PlacementWarning(UserWarning):
    """Nodes of a model do not run where one would expect."""


class ProbeError(ZyfaError):
    """Stored answers of a device are damaged, incomplete or another device's."""


class InputError(ZyfaError):
    """Inputs for a model or function have the wrong type, shape or values."""


class MigraphxError(ZyfaError):
    """MIGraphX is missing, or cannot do what a program needs."""
