"""Asks a device what no document says about it, and keeps the answers.

The questions are rows of zyfa_ort.kernels.asm.probe. Answers of an emulated device never stand in for a real one's.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zyfa_ort import env, hip
from zyfa_ort.errors import DeviceError, ProbeError
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.assemble import write_atomically
from zyfa_ort.kernels.asm.probe.answers import FAMILIES, MAX_ANSWER, Probe, Words
from zyfa_ort.kernels.asm.probe.rates import NOT_MEASURED
from zyfa_ort.kernels.asm.probe.table import BY_NAME, CODE_OBJECT, PROBES, valid_families

ARCHITECTURE = "gfx950"
TITLE = "# zyfa_ort probe answers"
HEADER = ("device", "arch", "driver", "emulated", "crc32")
ASK = "run 'zyfa-ort doctor --probe'"
EMULATED_LINE = "# emulated = yes"
UNWRITTEN = 0xCDCDCDCD
# What the product needs, and the families either of which is enough.
NEEDS = {
    "FP8 prefill": FAMILIES[:2],
    "BF16 prefill": ("bf16_prefill",),
    "decode": ("decode",),
    "quantisation": ("quantize",),
}


@dataclass(frozen=True)
class Answers:
    """What a device answered, by name of the probe, and which device it was."""

    device: str
    arch: str
    driver: int
    emulated: bool
    answers: Mapping[str, str]

    @property
    def valid(self) -> tuple[str, ...]:
        """Families of kernels whose results are right on this device."""
        return valid_families(self.answers)

    @property
    def missing(self) -> list[str]:
        """What the product needs and no valid family gives."""
        return [need for need, families in NEEDS.items() if not set(families) & set(self.valid)]

    @property
    def conversion(self) -> str | None:
        """`Fp8Config.conversion` of the FP8 prefill kernels that are valid here; None when none is."""
        valid = [
            c for c, family in zip(("nearest", "truncate"), FAMILIES, strict=False) if family in self.valid
        ]
        return valid[0] if valid else None

    @property
    def title(self) -> str:
        return f"{self.device}, {self.arch}{' (emulated, not a measurement)' if self.emulated else ''}"


def ask(ordinal: int = 0) -> Answers:
    """Runs every probe on a device.

    Raises:
        DeviceError: no HIP library, no device, not a gfx950. HipError: a call failed.
    """
    with hip.device(ordinal) as device:
        if device.architecture != ARCHITECTURE:
            raise DeviceError(
                f"{device.name}: expected {ARCHITECTURE}, got {device.architecture}; there is nothing to probe"
            )
        module = device.load(code_objects.load(CODE_OBJECT))
        answers = {probe.name: _answer(device, module, probe) for probe in PROBES}
        name = " ".join(device.name.split())
        return Answers(name, device.architecture, device.driver, device.emulated, answers)


def _answer(device: hip.Device, module: int, probe: Probe) -> str:
    words = np.ascontiguousarray(probe.inputs(), np.uint32)
    out = launch(device, module, probe, words)
    if probe.times:
        if device.emulated:
            return NOT_MEASURED
        out = launch(device, module, probe, words)  # its instructions are in the cache now
    return " ".join(probe.read(words, out).split())[:MAX_ANSWER]


def launch(device: hip.Device, module: int, probe: Probe, words: Words) -> Words:
    """The output words of one probe."""
    blank: Words = np.full((probe.outputs, words.shape[1]), UNWRITTEN, np.uint32)
    source, target = device.upload(words), device.upload(blank)
    arguments = struct.pack("<QQ", source, target)
    device.launch(device.function(module, probe.kernel), (1,), (64 * probe.waves,), arguments)
    device.synchronize(probe.name)
    out: Words = device.download(target, blank)
    device.free(source)
    device.free(target)
    return out


# --- the file


def default_path(emulated: bool) -> Path:
    """Where answers are kept: ZYFA_PROBE_FILE, else the user's cache folder; the emulated device has a file of its own."""
    chosen = env.PROBE_FILE.get()
    if chosen is not None:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "zyfa_ort" / f"probe-{ARCHITECTURE}{'-emulated' if emulated else ''}.txt"


def store(answers: Answers, path: Path | None = None) -> Path:
    """Writes the file, whole or not at all. Raises ProbeError: it holds a real device's answers and these are emulated."""
    path = path or default_path(answers.emulated)
    if answers.emulated and path.exists() and EMULATED_LINE not in _lines(path):
        raise ProbeError(
            f"{path}: expected a file of emulated answers, which do not replace anything else; remove it first"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, to_text(answers).encode())
    return path


def to_text(answers: Answers) -> str:
    body = "".join(f"{name} = {answer}\n" for name, answer in answers.answers.items())
    header = {
        "device": answers.device,
        "arch": answers.arch,
        "driver": answers.driver,
        "emulated": "yes" if answers.emulated else "no",
    }
    lines = [TITLE, *(f"# {key} = {value}" for key, value in header.items())]
    return "\n".join([*lines, f"# crc32 = {_checksum(lines, body)}", body])


def stored_answers(path: Path) -> Answers:
    """Reads a file that `store` wrote.

    Raises:
        ProbeError: no such file, damaged, or written by a version with other probes.
    """
    lines = _lines(path)
    head = lines[: len(HEADER) + 1]
    header = dict(_pair(path, line.removeprefix("# ")) for line in head[1:])
    if lines[:1] != [TITLE] or tuple(header) != HEADER or not all(line.startswith("# ") for line in head):
        raise ProbeError(f"{path}: expected a file that begins with '{TITLE}' and {', '.join(HEADER)}; {ASK}")
    body = "".join(f"{line}\n" for line in lines[len(head) :])
    if header["crc32"] != _checksum(head[:-1], body):
        raise ProbeError(f"{path}: damaged or changed by hand, its checksum is {header['crc32']}; {ASK}")
    answers = dict(_pair(path, line) for line in lines[len(head) :])
    if list(answers) != list(BY_NAME):
        differ = sorted(set(answers) ^ set(BY_NAME))
        raise ProbeError(f"{path}: written by a version with other probes ({', '.join(differ[:3])}); {ASK}")
    if header["emulated"] not in ("yes", "no") or not header["driver"].isdecimal():
        raise ProbeError(
            f"{path}: expected a driver number and emulated yes or no, got {header['driver']}, {header['emulated']}; {ASK}"
        )
    return Answers(
        header["device"], header["arch"], int(header["driver"]), header["emulated"] == "yes", answers
    )


def known_answers(emulated: bool) -> Answers | None:
    """The stored answers of this kind of device, None when it was never asked.

    Raises:
        ProbeError: the file is damaged, or holds the answers of the other kind.
    """
    path = default_path(emulated)
    if not path.exists():
        return None
    found = stored_answers(path)
    if found.emulated != emulated:
        kinds = ("a real device", "an emulated one")
        raise ProbeError(
            f"{path}: expected the answers of {kinds[emulated]}, got those of {kinds[not emulated]}; {ASK}"
        )
    return found


def to_dict(answers: Answers, path: Path) -> dict[str, Any]:
    """Plain data for JSON."""
    return {
        "device": answers.device,
        "arch": answers.arch,
        "driver": answers.driver,
        "emulated": answers.emulated,
        "file": str(path),
        "valid": list(answers.valid),
        "missing": answers.missing,
        "probes": [
            {
                "name": name,
                "question": BY_NAME[name].question,
                "expected": BY_NAME[name].expected,
                "answer": answer,
                "as_expected": judged(BY_NAME[name], answer),
                "meaning": BY_NAME[name].meaning(answer).text,
                "breaks": list(BY_NAME[name].meaning(answer).breaks),
            }
            for name, answer in answers.answers.items()
        ],
    }


def judged(probe: Probe, answer: str) -> bool | None:
    """Whether the answer is the expected one; None when an emulated device could not answer."""
    return None if answer == NOT_MEASURED else probe.is_expected(answer)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ProbeError(f"{path}: no answers are stored there; {ASK}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeError(f"{path}: cannot be read ({error}); {ASK}") from None


def _pair(path: Path, line: str) -> tuple[str, str]:
    name, equals, answer = line.partition(" = ")
    if not equals or not name.isidentifier():
        raise ProbeError(f"{path}: expected 'name = answer', got '{line[:60]}'; {ASK}")
    return name, answer


def _checksum(head: list[str], body: str) -> str:
    return f"{zlib.crc32(chr(10).join([*head, body]).encode()):08x}"
