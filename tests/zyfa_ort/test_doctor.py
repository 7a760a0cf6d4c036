"""What the doctor finds on this machine, and what it says about a broken one."""

from __future__ import annotations

import json
import subprocess
import sys

from zyfa_ort import doctor


def subjects(findings: list[doctor.Finding]) -> dict[str, doctor.Finding]:
    return {finding.subject: finding for finding in findings}


def test_a_working_machine_is_healthy():
    findings = doctor.diagnose()
    assert doctor.to_dict(findings)["healthy"]
    found = subjects(findings)
    assert found["CPU kernel"].found == "computes the right answer"
    assert "register_custom_ops_library(zyfa_ort.library_path())" in found["operator library"].advice


def test_it_says_what_would_run_where():
    found = subjects(doctor.diagnose())
    assert "AMD GPU" in found
    assert "zyfa_ort.session(path, device='gpu')" in found["GPU kernels"].advice


def test_the_emulated_device_is_tried_and_called_emulated():
    found = subjects(doctor.diagnose())["emulated gfx950"]
    assert found.state == "ok"
    assert "emulated: no GPU, no clock" in found.found


def test_a_wrong_answer_of_the_emulated_device_is_a_problem(monkeypatch):
    from zyfa_ort.kernels import emulator

    done = emulator.Result((), 1, 1)
    monkeypatch.setattr(emulator, "launch", lambda *args, **options: done)
    found = subjects(doctor.diagnose())["emulated gfx950"]
    assert (found.state, found.found) == ("problem", "executes its own kernel, with the wrong answer")


def test_a_broken_library_is_a_problem_with_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("ZYFA_LIBRARY", str(tmp_path / "gone.so"))
    findings = doctor.diagnose()
    assert not doctor.to_dict(findings)["healthy"]
    assert subjects(findings)["operator library"].state == "problem"
    assert "gone.so" in subjects(findings)["operator library"].found
    assert subjects(findings)["ZYFA_LIBRARY"].found.endswith("gone.so")


def test_gpu_architectures_are_read_from_the_driver(monkeypatch, tmp_path):
    for node, version in (("0", 0), ("1", 90500), ("2", 90402)):
        (tmp_path / node).mkdir()
        (tmp_path / node / "properties").write_text(
            f"cpu_cores_count 0\ngfx_target_version {version}\nsimd_count 1\n"
        )
    monkeypatch.setattr(doctor, "_KFD_NODES", tmp_path)
    assert subjects(doctor.diagnose())["AMD GPU"].found == "gfx950, gfx942"


def test_the_command_prints_json():
    done = subprocess.run(
        [sys.executable, "-m", "zyfa_ort.cli", "doctor", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["healthy"]
