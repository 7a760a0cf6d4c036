"""The attention kernels that AMD ships keep every wait-state rule, in linear order and without running."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from zyfa_ort.kernels.emulator import lint

pytestmark = pytest.mark.peers


def test_attention_kernels_have_warnings_of_three_rules_only(aiter_objects: Path) -> None:
    files = sorted((aiter_objects / "fmha_v3_fwd").glob("*.co"))
    assert files
    for file in files:
        found = Counter((f.rule, f.severity) for f in lint(file.read_bytes()))
        # v_cmp, s_nop 0, v_cndmask; M0 added to right before a load; a swap of a swap, one state later.
        assert set(found) <= {("G6", "warning"), ("G12", "warning"), ("G4", "warning")}, file.name
