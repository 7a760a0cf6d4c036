"""The build backend: scikit-build-core, which also asks for the ziglang wheel where ROCm cannot compile device code."""

from __future__ import annotations

import rocm
from scikit_build_core import build as scikit
from scikit_build_core.build import *  # noqa: F403

ZIGLANG = "ziglang>=0.15"

Settings = dict[str, str | list[str]] | None


def _device_toolchain() -> list[str]:
    commands = rocm.commands()
    usable = commands is not None and rocm.refusal((str(commands[0]),)) is None
    return [] if usable else [ZIGLANG]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return [*scikit.get_requires_for_build_wheel(config_settings), *_device_toolchain()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return [*scikit.get_requires_for_build_editable(config_settings), *_device_toolchain()]
