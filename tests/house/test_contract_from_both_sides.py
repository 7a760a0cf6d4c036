"""The operator contract is written in C++ and in Python: names, order, allowed words and defaults must agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from zyfa_ort.graph_passes import schema

from zyfa_ort import env

ROOT = Path(__file__).parents[2]
ATTENTION = (ROOT / "custom_ops/ops/attention_node.cc").read_text(encoding="utf-8")
PORTS = (ROOT / "custom_ops/ops/attention_node.hpp").read_text(encoding="utf-8")
CHOICES = (ROOT / "custom_ops/ops/choice.hpp").read_text(encoding="utf-8")
OPERATORS = (ROOT / "docs/operators.md").read_text(encoding="utf-8")


def enum_names(name: str) -> list[str]:
    """`kPastKey` -> "past_key" for the enumerators of one enum, the count at the end left out."""
    body = re.search(rf"enum Attention{name} : size_t \{{(.*?)\}}", PORTS, re.DOTALL)
    assert body
    words = [word.strip() for word in body.group(1).split(",")][:-1]
    return [re.sub(r"(?<!^)([A-Z])", r"_\1", word.removeprefix("k")).lower() for word in words]


def cpp_words(table: str) -> tuple[str, ...]:
    body = re.search(rf"{table}\[\] = \{{(.*?)\}};", CHOICES, re.DOTALL)
    assert body
    return tuple(re.findall(r'\{"(\w+)",', body.group(1)))


def test_inputs_and_outputs_in_the_same_order():
    assert enum_names("Input") == list(schema.INPUTS)
    assert enum_names("Output") == list(schema.OUTPUTS)


def test_attributes_are_the_same():
    read = re.search(r"AttentionAttributes read_attributes\(.*?\n\}", ATTENTION, re.DOTALL)
    assert read
    in_cpp = set(re.findall(r'node\.(?:integer|real)\("(\w+)"\)|choice\(node, "(\w+)"', read.group(0)))
    assert {first or second for first, second in in_cpp} == set(schema.ATTRIBUTES)


@pytest.mark.parametrize(
    ("attribute", "table"),
    [
        ("causal_alignment", "kAlignments"),
        ("layout", "kLayouts"),
        ("precision", "kPrecisions"),
        ("fp8_edges", "kEdges"),
        ("rotation", "kRotations"),
    ],
)
def test_words_are_the_same(attribute, table):
    assert cpp_words(table) == schema.ATTRIBUTES[attribute].allowed


def test_operator_names_are_the_same():
    files = (ROOT / "custom_ops/ops").glob("*.hpp")
    in_cpp = {
        name for file in files for name in re.findall(r'kName = "(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert in_cpp == set(schema.ATTRIBUTES_OF)


def test_the_provider_has_the_version_of_the_package():
    """ONNX Runtime takes nothing but a semantic version."""
    written = re.search(
        r'kVersion = "(\d+\.\d+\.\d+)"', (ROOT / "custom_ops/ep/names.hpp").read_text(encoding="utf-8")
    )
    assert written
    assert f'version = "{written.group(1)}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_provider_options_are_documented():
    source = (ROOT / "custom_ops/ep/options.cc").read_text(encoding="utf-8")
    guide = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    options = re.findall(r'key == "(\w+)"', source)
    assert len(options) == 4
    assert not [option for option in options if f"`{option}`" not in guide]


def test_the_reference_page_names_everything():
    for name in (*schema.INPUTS, *schema.OUTPUTS, *schema.ATTRIBUTES, *schema.ATTRIBUTES_OF):
        assert f"`{name}`" in OPERATORS, f"docs/operators.md does not mention {name}"


def test_every_environment_variable_has_one_home():
    """Variables that any source file reads are those that env.py lists, and the user guide explains all of them."""
    read = set()
    for room in ("zyfa_ort", "graph_passes", "kernels", "custom_ops"):
        for path in (ROOT / room).rglob("*"):
            if path.suffix in {".py", ".cc", ".hpp", ".cmake"}:
                read |= set(
                    re.findall(r"(?:getenv\(\"|ENV\{|environ\W+)(ZYFA_\w+)", path.read_text(encoding="utf-8"))
                )
    listed = {variable.name for variable in env.VARIABLES}
    assert read <= listed
    guide = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert not [name for name in listed if name not in guide]
