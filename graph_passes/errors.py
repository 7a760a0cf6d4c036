"""The errors a caller can meet. Each message is one line: what, expected, got, what to do."""

from __future__ import annotations


class GraphPassError(ValueError):
    """A model or an option that the passes refuse before doing any work."""


class ModelFileError(GraphPassError):
    """A model file that cannot be read or written."""
