"""The build backend: scikit-build-core, which also asks for the ziglang wheel where ROCm cannot compile device code."""

from __future__ import annotations

import rocm
from scikit_build_core import build as scikit
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ZIGLANG = "ziglang>=0.15"

Settings = dict[str, str | list[str]] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return [*scikit.get_requires_for_build_wheel(config_settings), *_device_toolchain()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return [*scikit.get_requires_for_build_editable(config_settings), *_device_toolchain()]


def _device_toolchain() -> list[str]:
    commands = rocm.commands()
    usable = commands is not None and rocm.refusal((str(commands[0]),)) is None
    return [] if usable else [ZIGLANG]
