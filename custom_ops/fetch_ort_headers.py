"""Fetches ONNX Runtime's C headers for the build when neither the user nor the system has them.

On Debian: the package libonnxruntime-dev of a newer suite, through a private apt tree (own sources, lists and cache
folders derived from the machine's own sources), unpacked beside the build; the system is not touched. Elsewhere: the
official release archive. Only headers are kept, about 1 MB.
"""

from __future__ import annotations

import argparse
import io
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "libonnxruntime-dev"
NEWER_SUITES = ("experimental", "sid")
RELEASE = "1.27.1"
ARCHIVE = "https://github.com/microsoft/onnxruntime/releases/download/v{0}/onnxruntime-linux-{1}-{0}.tgz"
ARCHIVE_MACHINES = {"x86_64": "x64", "aarch64": "aarch64"}


class Unavailable(Exception):
    """One way of getting the headers does not work here; the text says why."""


def api_version(header: Path) -> int:
    """The ORT_API_VERSION that a header defines, 0 when it defines none."""
    match = re.search(r"^#define ORT_API_VERSION (\d+)", header.read_text(encoding="utf-8"), re.MULTILINE)
    return int(match.group(1)) if match else 0


def own_suite() -> str:
    """Code name of this Debian release, e.g. "bookworm"."""
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    match = re.search(r'^VERSION_CODENAME="?(\w+)', release, re.MULTILINE)
    if not match:
        raise Unavailable("this system names no Debian release")
    return match.group(1)


def deb822_stanzas(text: str) -> Iterator[dict[str, str]]:
    """Fields of every stanza of a .sources file, comments dropped."""
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        fields = re.findall(r"^([\w-]+):\s*(.*(?:\n[ \t].*)*)", "\n".join(lines), re.MULTILINE)
        if fields:
            yield dict(fields)


def machine_source(suite: str) -> str:
    """A deb822 stanza for {suite} placeholders, made from the source that serves this machine's own suite."""
    for path in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for fields in deb822_stanzas(path.read_text(encoding="utf-8")):
            if suite in fields.get("Suites", "").split():
                signed = f"Signed-By: {fields['Signed-By']}\n" if "Signed-By" in fields else ""
                return f"Types: deb\nURIs: {fields['URIs'].split()[0]}\nSuites: {{suite}}\nComponents: main\n{signed}"
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.list"))]:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        match = re.search(rf"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+{suite}\s", text, re.MULTILINE)
        if match:
            signed = re.search(r"signed-by=(\S+)", match.group(1) or "")
            key = f"Signed-By: {signed.group(1)}\n" if signed else ""
            return f"Types: deb\nURIs: {match.group(2)}\nSuites: {{suite}}\nComponents: main\n{key}"
    raise Unavailable(f"no apt source serves the suite {suite}")


def run(command: list[str], cwd: Path) -> None:
    """Runs a command quietly; its last line of output becomes the reason when it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise Unavailable(f"{' '.join(command[:1] + command[-2:])}: {lines[-1]}")


def from_debian(suite: str, source: str, folder: Path) -> Path:
    """Downloads and unpacks the package of one suite below `folder`; returns the folder of the headers."""
    return next(debian_packages(suite, source, folder, [PACKAGE]).rglob("onnxruntime_c_api.h")).parent


def debian_packages(suite: str, source: str, folder: Path, packages: list[str]) -> Path:
    """Downloads packages of one suite through an apt tree below `folder`; returns where they are unpacked."""
    for name in ("lists/partial", "cache/archives/partial", "unpacked", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "zyfa.sources").write_text(source.format(suite=suite), encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": folder / "zyfa.sources",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "",
        "Acquire::Check-Valid-Until": "false",  # frozen mirrors keep an old Release file; its signature still counts
    }
    apt = ["apt-get", *(f"-o{key}={value}" for key, value in options.items())]
    run([*apt, "update"], folder)
    run([*apt, "download", *packages], folder)
    for package in sorted(folder.glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), "unpacked"], folder)
    return folder / "unpacked"


def from_archive(folder: Path) -> Path:
    """Downloads the official release archive and unpacks its headers below `folder`."""
    machine = ARCHIVE_MACHINES.get(platform.machine())
    if machine is None:
        raise Unavailable(f"no release archive for {platform.machine()}")
    url = ARCHIVE.format(RELEASE, machine)
    print(f"-- fetching {url}", flush=True)
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            content = response.read()
    except OSError as error:
        raise Unavailable(f"{url}: {error}") from error
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive.getmembers():
            if member.isfile() and "/include/" in member.name and member.name.endswith(".h"):
                target = folder / Path(member.name).name
                extracted = archive.extractfile(member)
                if extracted is not None:
                    target.write_bytes(extracted.read())
    return folder


def attempts(folder: Path) -> Iterator[tuple[str, Path | Unavailable]]:
    """Every way in turn: its name and where the headers are, or why not."""
    if shutil.which("apt-get") and shutil.which("dpkg-deb"):
        try:
            source = machine_source(own_suite())
        except Unavailable as reason:
            yield "Debian package", reason
        else:
            for suite in NEWER_SUITES:
                print(f"-- fetching {PACKAGE} from Debian's suite {suite} (private apt tree)", flush=True)
                try:
                    yield f"Debian suite {suite}", from_debian(suite, source, folder / suite)
                except Unavailable as reason:
                    yield f"Debian suite {suite}", reason
    try:
        (folder / "archive").mkdir()
        yield "release archive", from_archive(folder / "archive")
    except Unavailable as reason:
        yield "release archive", reason


def main() -> int:
    """Fills the target folder with headers of at least the wanted API version; 1 when there is no way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--min-api", type=int, required=True)
    parser.add_argument("target", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name, found in attempts(Path(scratch)):
            if isinstance(found, Unavailable):
                print(f"-- {name}: {found}", file=sys.stderr)
                continue
            version = api_version(found / "onnxruntime_c_api.h")
            if version < args.min_api:
                print(f"-- {name}: API version {version}, expected {args.min_api} or later", file=sys.stderr)
                continue
            shutil.copytree(found, args.target, dirs_exist_ok=True)
            print(f"-- ONNX Runtime headers of API version {version} from {name}")
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
