"""Asking the emulated HIP device, keeping the answers, and what the command line says about them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from zyfa_ort.kernels.asm.probe.rates import NOT_MEASURED
from zyfa_ort.kernels.asm.probe.table import PROBES
from zyfa_ort.kernels.emulator import hip_library_path

from zyfa_ort import doctor, hip, probe
from zyfa_ort.errors import DeviceError, ProbeError

RATE = "4.00 cycles"


@pytest.fixture(scope="module")
def answers() -> probe.Answers:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZYFA_HIP_LIBRARY", hip_library_path())
        return probe.ask()


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ZYFA_PROBE_FILE", raising=False)
    return tmp_path / "cache" / "zyfa_ort"


def real(answers: probe.Answers, **changed: str) -> probe.Answers:
    """As a real device would have answered."""
    measured = {name: RATE if a == NOT_MEASURED else a for name, a in answers.answers.items()}
    return dataclasses.replace(
        answers, device="AMD Instinct MI355X", emulated=False, answers=measured | changed
    )


def zyfa(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "zyfa_ort.cli", *arguments],
        env={**os.environ, "ZYFA_HIP_LIBRARY": hip_library_path(), **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


# --- asking


def test_the_emulated_device_answers_everything(answers: probe.Answers) -> None:
    assert list(answers.answers) == [one.name for one in PROBES]
    assert answers.emulated and answers.title.endswith("(emulated, not a measurement)")
    unexpected = [one.name for one in PROBES if probe.judged(one, answers.answers[one.name]) is False]
    assert not unexpected
    assert {one.name for one in PROBES if answers.answers[one.name] == NOT_MEASURED} == {
        one.name for one in PROBES if one.times
    }
    assert answers.valid == ("fp8_prefill", "bf16_prefill", "decode", "quantize")
    assert (answers.conversion, answers.missing) == ("nearest", [])


@pytest.mark.parametrize(
    ("changed", "conversion", "missing"),
    [
        ({"byte_rounding": "truncate"}, "truncate", []),
        ({"byte_rounding": "other: 3 of 64 differ"}, None, ["FP8 prefill"]),
        ({"transpose_b16": "other"}, "nearest", ["BF16 prefill", "decode"]),
        ({"permlane32_swap": "other"}, None, ["FP8 prefill", "BF16 prefill", "decode", "quantisation"]),
        ({"rate_exp_f32": "16.03 cycles"}, "nearest", []),
    ],
)
def test_other_answers_change_what_is_valid(
    answers: probe.Answers, changed: dict[str, str], conversion: str | None, missing: list[str]
) -> None:
    other = real(answers, **changed)
    assert (other.conversion, other.missing) == (conversion, missing)


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZYFA_HIP_LIBRARY", hip_library_path())
    monkeypatch.setattr(probe, "ARCHITECTURE", "gfx1250")
    with pytest.raises(DeviceError, match="expected gfx1250, got gfx950; there is nothing to probe"):
        probe.ask()


def test_rates_are_measured_on_a_real_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulated one, asked as if it were real: its clock counts, and the answer is a number."""
    monkeypatch.setenv("ZYFA_HIP_LIBRARY", hip_library_path())
    monkeypatch.setattr(hip.Device, "emulated", False)
    rates = [a for name, a in probe.ask().answers.items() if name.startswith("rate_")]
    assert len(rates) == 6 and all(float(a.removesuffix(" cycles")) > 0 for a in rates)


# --- the file


def test_the_file_gives_back_what_was_stored(answers: probe.Answers, cache: Path, tmp_path: Path) -> None:
    path = probe.store(answers)
    assert path == cache / "probe-gfx950-emulated.txt"
    assert probe.stored_answers(path) == answers == probe.known_answers(emulated=True)
    lines = path.read_text().splitlines()
    assert lines[:5] == [
        "# zyfa_ort probe answers", "# device = emulated gfx950 (MI355X)", "# arch = gfx950",
        f"# driver = {answers.driver}", "# emulated = yes"]  # fmt: skip
    assert "byte_rounding = nearest_even" in lines
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_emulated_answers_never_stand_in_for_real_ones(
    answers: probe.Answers, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    probe.store(answers)
    assert probe.known_answers(emulated=False) is None
    genuine = probe.store(real(answers))
    assert genuine == cache / "probe-gfx950.txt"
    monkeypatch.setenv("ZYFA_PROBE_FILE", str(genuine))
    before = genuine.read_bytes()
    with pytest.raises(ProbeError, match="expected a file of emulated answers, which do not replace"):
        probe.store(answers)
    assert genuine.read_bytes() == before
    with pytest.raises(
        ProbeError, match="expected the answers of an emulated one, got those of a real device"
    ):
        probe.known_answers(emulated=True)
    monkeypatch.setenv("ZYFA_PROBE_FILE", str(tmp_path / "mine.txt"))
    assert probe.store(answers) == tmp_path / "mine.txt"
    probe.store(real(answers))  # a real device may
    assert not probe.stored_answers(tmp_path / "mine.txt").emulated


DAMAGE = [
    (lambda text: "", "expected a file that begins with"),
    (lambda text: "hello", "expected a file that begins with"),
    (lambda text: text.replace("# arch = gfx950\n", ""), "expected a file that begins with"),
    (lambda text: text.replace("# arch", "arch"), "expected a file that begins with"),
    (lambda text: text.replace("# arch = gfx950", "# arch"), "expected 'name = answer', got 'arch'"),
    (lambda text: text.replace("nearest_even", "truncate", 1), "damaged or changed by hand"),
    (lambda text: text[:-30], "damaged or changed by hand"),
    (lambda text: text.replace("emulated = yes", "emulated = no"), "damaged or changed by hand"),
    (lambda text: text + "more = 1\n", "damaged or changed by hand"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_a_damaged_file_is_refused(answers: probe.Answers, tmp_path: Path, damage, message: str) -> None:
    path = tmp_path / "answers.txt"
    path.write_text(damage(probe.to_text(answers)))
    with pytest.raises(ProbeError, match=message) as refused:
        probe.stored_answers(path)
    assert str(path) in str(refused.value) and "zyfa-ort doctor --probe" in str(refused.value)


def test_files_of_other_versions_are_refused(answers: probe.Answers, tmp_path: Path) -> None:
    older = dict(answers.answers)
    older.pop("max3_nan")
    path = probe.store(dataclasses.replace(answers, answers=older), tmp_path / "older.txt")
    with pytest.raises(ProbeError, match=r"written by a version with other probes \(max3_nan\)"):
        probe.stored_answers(path)
    newer = {**answers.answers, "unheard_of": "1"}
    path = probe.store(dataclasses.replace(answers, answers=newer), tmp_path / "newer.txt")
    with pytest.raises(ProbeError, match=r"other probes \(unheard_of\)"):
        probe.stored_answers(path)
    path = probe.store(dataclasses.replace(answers, driver="new"), tmp_path / "driver.txt")
    with pytest.raises(ProbeError, match="expected a driver number and emulated yes or no, got new, yes"):
        probe.stored_answers(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="no answers are stored there; run 'zyfa-ort doctor --probe'"):
        probe.stored_answers(tmp_path / "nothing.txt")
    with pytest.raises(ProbeError, match="cannot be read"):
        probe.stored_answers(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProbeError, match="cannot be read"):
        probe.stored_answers(tmp_path / "binary")


def test_writing_is_all_or_nothing(
    answers: probe.Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = probe.store(answers, tmp_path / "answers.txt")
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        probe.store(dataclasses.replace(answers, driver=1), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["answers.txt"]


# --- the command line


def test_the_table() -> None:
    done = zyfa("doctor", "--probe")
    assert done.returncode == 0, done.stderr
    assert "Probes of emulated gfx950 (MI355X), gfx950 (emulated, not a measurement)" in done.stdout
    assert "Valid kernels: fp8_prefill, bf16_prefill, decode, quantize" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["ok", "byte_rounding", "nearest_even", "nearest_even"] in [row[:4] for row in rows]
    assert sum(row[:2] == ["not", "measured"] for row in rows) == 7
    assert done.stdout.splitlines()[-1].startswith("Stored in ")
    assert "differs" not in done.stdout


def test_json(cache: Path) -> None:
    done = zyfa("doctor", "--probe", "--json", ZYFA_EMULATED_BYTE_ROUNDING="truncate")
    assert done.returncode == 0 and done.stderr == ""
    data = json.loads(done.stdout)
    assert data["emulated"] is True and data["file"] == str(cache / "probe-gfx950-emulated.txt")
    assert data["valid"] == ["fp8_prefill_truncate", "bf16_prefill", "decode", "quantize"]
    (row,) = [row for row in data["probes"] if row["as_expected"] is False]
    assert (row["name"], row["expected"], row["answer"]) == ("byte_rounding", "nearest_even", "truncate")
    assert row["meaning"] == "FP8 prefill kernels with suffix _truncate are valid"
    assert probe.stored_answers(Path(data["file"])).conversion == "truncate"


def test_a_device_that_truncates_is_shown() -> None:
    done = zyfa("doctor", "--probe", ZYFA_EMULATED_BYTE_ROUNDING="truncate")
    assert done.returncode == 0
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("differs")]
    assert row[1:4] == ["byte_rounding", "nearest_even", "truncate"]
    assert "Valid kernels: fp8_prefill_truncate," in done.stdout


def test_something_without_a_valid_kernel_is_exit_code_2(
    answers: probe.Answers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    from zyfa_ort.cli import probe as command

    monkeypatch.setattr(command.probes, "ask", lambda: real(answers, byte_rounding="other: [bold]odd"))
    with pytest.raises(typer.Exit) as left:
        command.probe(as_json=False)
    shown = capsys.readouterr().out
    assert left.value.exit_code == 2
    assert "No valid kernel for FP8 prefill: models run on the CPU kernel" in shown
    assert "other: [bold]odd" in shown and "no FP8 prefill kernel is valid here" in shown


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"ZYFA_HIP_LIBRARY": "/nowhere/gone.so"},
            "zyfa-ort: ZYFA_HIP_LIBRARY: expected the path of a HIP library",
        ),
        ({"ZYFA_EMULATED_FAULT": "device"}, "zyfa-ort: hipInit: hipErrorNoDevice"),
        (
            {"ZYFA_EMULATED_FAULT": "run:4"},
            "zyfa-ort: hipDeviceSynchronize (byte_place): hipErrorLaunchFailure",
        ),
        ({"ZYFA_EMULATED_BYTE_ROUNDING": "up"}, "zyfa-ort: hipInit: hipErrorInvalidValue"),
    ],
)
def test_devices_that_cannot_be_asked(cache: Path, environment: dict[str, str], message: str) -> None:
    done = zyfa("doctor", "--probe", **environment)
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("zyfa-ort: ")]
    assert done.returncode == 1 and said.startswith(message), done.stderr
    assert not list(cache.glob("*"))


def test_the_emulated_device_says_which_roundings_there_are() -> None:
    done = zyfa("doctor", "--probe", ZYFA_EMULATED_BYTE_ROUNDING="up")
    assert "ZYFA_EMULATED_BYTE_ROUNDING: expected nearest_even or truncate, got 'up'" in done.stderr


# --- doctor without --probe


def findings() -> list[doctor.Finding]:
    return [finding for finding in doctor.diagnose() if finding.subject == "device probes"]


def test_the_doctor_knows_what_was_stored(answers: probe.Answers) -> None:
    probe.store(answers)
    assert not findings()
    probe.store(real(answers))
    (known,) = findings()
    assert (known.state, known.found) == (
        "ok", "AMD Instinct MI355X, gfx950: valid kernels for everything")  # fmt: skip
    probe.store(real(answers, transpose_b8="other"))
    (known,) = findings()
    assert known.state == "problem" and known.found.endswith("no valid kernel for FP8 prefill")


def test_the_doctor_finds_a_damaged_file(answers: probe.Answers) -> None:
    probe.store(real(answers)).write_text("x")
    (known,) = findings()
    assert known.state == "problem" and "expected a file that begins with" in known.found


def test_the_doctor_recommends_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_gpu_architectures", lambda: ["gfx950"])
    (known,) = findings()
    assert (known.state, known.advice) == ("note", "zyfa-ort doctor --probe")
