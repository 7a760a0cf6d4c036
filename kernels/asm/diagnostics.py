"""clang's error output as one line: which line of the text, where the generator made it, what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_ERROR = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<what>.*)$", re.MULTILINE
)
_EXPANDED = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: note: while in macro instantiation", re.MULTILINE
)
_FROM = re.compile(r"//\s*from:\s*(\S.*?)\s*$")
_QUOTED = 160  # characters of a line that are shown


def explain(stderr: str, source: Path, text: str, origins: Sequence[str] = ()) -> str:
    """One line about the first error; `source` is the file that clang was given, `text` its contents."""
    errors = list(_ERROR.finditer(stderr))
    if not errors:
        said = " ".join(stderr.split()) or "no message"
        return f"{source.name}: clang refuses it: {said[:400]}"
    first = errors[0]
    found = first
    if Path(first["file"]).name != source.name:
        # Errors inside a macro are numbered from its beginning; the outermost use of it is the line of the text.
        uses = [
            use for use in _EXPANDED.finditer(stderr, first.end()) if Path(use["file"]).name == source.name
        ]
        if not uses:
            return f"{Path(first['file']).name} line {first['line']} (included by {source.name}): {first['what']}"
        found = uses[0]
    lines = text.splitlines()
    at = int(found["line"])
    quoted = f" {lines[at - 1].strip()[:_QUOTED]!r}" if 0 < at <= len(lines) else ""
    origin = origin_of(lines, at, origins)
    where = f" (from {origin})" if origin else ""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{source.name} line {at}{quoted}{where}: {first['what']}{more}"


def origin_of(lines: Sequence[str], at: int, origins: Sequence[str] = ()) -> str:
    """Where line number `at` (from 1) was made; empty when neither `origins` nor a comment says."""
    if 0 < at <= len(origins) and origins[at - 1]:
        return origins[at - 1]
    for line in reversed(lines[: max(at, 0)]):
        if not line.strip():
            break
        if (found := _FROM.search(line)) is not None:
            return found[1]
    return ""
