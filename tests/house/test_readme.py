"""What the README and the docs name exists: files, make targets, commands and their options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from zyfa_ort.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request):
    return request.param


def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_paths_exist(page):
    rooms = "zyfa_ort|graph_passes|kernels|custom_ops|tests|docs"
    for path in re.findall(rf"`((?:{rooms})/[\w./-]+)`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_make_targets_exist(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([\w-]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name} names make {target}"


def test_commands_and_options_exist(page):
    commands = get_command(app).commands
    for line in re.findall(r"zyfa-ort ([^`\n]+)", page.read_text(encoding="utf-8")):
        words = line.split()
        if words[0] not in commands and not re.fullmatch(r"[a-z]+", words[0]):
            continue
        assert words[0] in commands, f"{page.name} names zyfa-ort {words[0]}"
        known = {option for parameter in commands[words[0]].params for option in parameter.opts + parameter.secondary_opts}
        for option in re.findall(r"(?<![\w-])--[a-z0-9-]+", line):
            assert option in known, f"{page.name} names zyfa-ort {words[0]} {option}"
