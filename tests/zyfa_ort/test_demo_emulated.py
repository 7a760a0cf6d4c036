"""The real SmolLM2 on the emulated MI355X: the first layers, and (slow) all of them over more than one tile of rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zyfa_ort.demo import __main__ as command
from zyfa_ort.demo.checkpoint import find_gguf
from zyfa_ort.demo.emulated import ON_GPU, Emulated, run_emulated
from zyfa_ort.errors import InputError

pytestmark = pytest.mark.demo

CACHE = Path(__file__).parents[2] / ".cache" / "demo"
CPU, GPU = "CPUExecutionProvider", "ZyfaExecutionProvider"


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    try:
        find_gguf()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def two_layers() -> Emulated:
    return run_emulated(CACHE, print, layers=2, tokens=24)


def check(seen: Emulated) -> None:
    assert seen.device == "emulated gfx950 (MI355X)"
    assert seen.findings == ""
    assert set(seen.placement) == {"bf16", "fp8", "fp8 + hadamard"}
    for nodes in seen.placement.values():
        assert (GPU, "ZyfaPrefillAttention", seen.layers) in nodes
        assert {op for provider, op, _ in nodes if provider == GPU} == {"ZyfaPrefillAttention"}
        assert {op for provider, op, _ in nodes if provider == CPU} >= {"MatMul", "Gather"}
    assert [(row.title, row.step) for row in seen.rows] == [
        (variant.title, step) for variant in ON_GPU for step in ("prefill", "decode")
    ]
    for row in seen.rows:
        assert row.logits <= row.bound, row
        assert row.cache <= row.bound, row
    assert seen.holds


def test_the_first_two_layers(two_layers: Emulated) -> None:
    check(two_layers)


def test_prefill_is_not_the_decode_kernel(two_layers: Emulated) -> None:
    """Bounds of one arithmetic in another order, where the exact softmax of the FP8 inputs would not pass."""
    bounds = {(row.title, row.step): row.bound for row in two_layers.rows}
    assert bounds["fp8", "prefill"] == 2 * 2.5e-3 < bounds["fp8", "decode"]


@pytest.mark.parametrize("what", ["findings", "placement", "rows"])
def test_what_does_not_hold_is_said(two_layers: Emulated, what: str) -> None:
    changed = {
        "findings": "[G16] read before its wait",
        "placement": {"bf16": ((CPU, "ZyfaPrefillAttention", 2),)},
        "rows": (*two_layers.rows[:-1], replace(two_layers.rows[-1], logits=1.0)),
    }
    assert not replace(two_layers, **{what: changed[what]}).holds


def test_the_command(two_layers: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    app = typer.Typer()
    app.command()(command.main)
    monkeypatch.setattr(command, "run_emulated", lambda *_: two_layers)
    words = ["--cache", str(CACHE), "--device", "emulated"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0
    assert "2 ZyfaPrefillAttention" in shown.stdout
    assert "Findings of the emulator: none" in shown.stdout
    data = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [row["title"] for row in data["rows"]] == [row.title for row in two_layers.rows]
    monkeypatch.setattr(command, "run_emulated", lambda *_: replace(two_layers, findings="[G16]"))
    assert CliRunner().invoke(app, words).exit_code == 2


@pytest.mark.parametrize(
    ("layers", "tokens", "message"),
    [
        (2, 5000, "tokens: expected 1 to 1023, the length of the demo's text, got 5000"),
        (31, 24, "layers: expected 1 to 30, got 31"),
    ],
)
def test_numbers_out_of_range(tmp_path: Path, layers: int, tokens: int, message: str) -> None:
    cache = CACHE if layers == 2 else tmp_path
    with pytest.raises(InputError) as refusal:
        run_emulated(cache, print, layers=layers, tokens=tokens)
    assert str(refusal.value) == message


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "tokens"), [(2, 600), (30, 300)])
def test_more_layers_and_rows(layers: int, tokens: int) -> None:
    check(run_emulated(CACHE, print, layers=layers, tokens=tokens))
