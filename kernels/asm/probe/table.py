"""All probes, in the order in which they are shown, and what a set of answers leaves valid."""

from __future__ import annotations

from collections.abc import Mapping

from zyfa_ort.kernels.asm.probe.answers import FAMILIES, Probe
from zyfa_ort.kernels.asm.probe.conversions import CONVERSIONS
from zyfa_ort.kernels.asm.probe.lanes import LANES_TABLE
from zyfa_ort.kernels.asm.probe.matrix import MATRIX
from zyfa_ort.kernels.asm.probe.rates import TIMED

CODE_OBJECT = "probe"
PROBES: tuple[Probe, ...] = (*CONVERSIONS, *MATRIX, *LANES_TABLE, *TIMED)
BY_NAME: Mapping[str, Probe] = {probe.name: probe for probe in PROBES}


def valid_families(answers: Mapping[str, str]) -> tuple[str, ...]:
    """Families of kernels that no answer rules out. Names that no probe has are a KeyError."""
    broken = {one for name, answer in answers.items() for one in BY_NAME[name].meaning(answer).breaks}
    return tuple(family for family in FAMILIES if family not in broken)
