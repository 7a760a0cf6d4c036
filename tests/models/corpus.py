"""The stored graphs: what each file is, its model with weights, and its inputs.

`graphs.tar.xz` holds the graphs without weights (weights.py), `index.json` what is known about them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

import onnx
from numpy.typing import NDArray

from models import archive, inputs, weights

HERE: Final = Path(__file__).parent
GRAPHS: Final = HERE / "graphs.tar.xz"
INDEX: Final = HERE / "index.json"


@dataclass(frozen=True)
class Site:
    """What one attention of a model computes, as its configuration says.

    scale     factor that the attention itself applies; 1 where the projection of the queries holds it already
    causal    and top_left: row 0 sees key 0 only, whatever the number of keys (else the last row sees all)
    window    number of keys that a row sees, its own included; 0: all
    padding   keys are hidden by a mask input
    past      the cache holds keys and values of this attention (a latent cache is not one)
    """

    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    scale: float
    causal: bool = False
    top_left: bool = False
    window: int = 0
    padding: bool = False
    softcap: float = 0.0
    bias: bool = False
    sinks: bool = False
    past: bool = False


@dataclass(frozen=True)
class Entry:
    """One file.

    exporter    key of EXPORTERS
    attention   implementation asked for: "sdpa", "eager", "hand" (own module), "builder" (no choice)
    inputs      "mask", "nomask", "past", "position_ids", "encoder-decoder", "hand", "images", "audio"
    sites       in graph order
    sets        input sets in the words of inputs.py
    faults      input set -> why the original does not run on it
    unloadable  why ONNX Runtime's CPU provider cannot load the original; empty when it can
    note        what else a reader should know
    """

    file: str
    family: str
    exporter: str
    attention: Literal["sdpa", "eager", "hand", "builder"]
    inputs: str
    dtype: Literal["fp32", "fp16", "bf16", "int4"]
    sites: tuple[Site, ...]
    sets: tuple[str, ...]
    static: bool = False
    faults: Mapping[str, str] = field(default_factory=dict, hash=False)
    unloadable: str = ""
    note: str = ""

    @property
    def runnable(self) -> tuple[str, ...]:
        """Input sets on which the original runs."""
        return () if self.unloadable else tuple(one for one in self.sets if one not in self.faults)

    def __str__(self) -> str:
        return self.file


def _site(facts: Mapping[str, Any]) -> list[Site]:
    kept = {key: value for key, value in facts.items() if key != "times"}
    return [Site(**kept)] * facts.get("times", 1)


def _entry(facts: Mapping[str, Any]) -> Entry:
    known = {one.name for one in fields(Entry)}
    assert set(facts) <= known, f"{facts['file']}: unknown facts {set(facts) - known}"
    sites = tuple(site for one in facts["sites"] for site in _site(one))
    return Entry(**dict(facts) | {"sites": sites, "sets": tuple(facts["sets"])})


@functools.cache
def _index() -> dict[str, Any]:
    return dict(json.loads(INDEX.read_text(encoding="utf-8")))


def exporters() -> dict[str, str]:
    """Key of an exporter -> its name and versions."""
    return dict(_index()["exporters"])


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All files in the order of their names."""
    return tuple(_entry(facts) for facts in _index()["files"])


@functools.cache
def _graphs() -> dict[str, bytes]:
    return archive.read(GRAPHS)


def structure(entry: Entry) -> onnx.ModelProto:
    """The graph as it is stored: its weights have shapes and types only."""
    return onnx.ModelProto.FromString(_graphs()[f"{entry.file}.onnx"])


def model(entry: Entry) -> onnx.ModelProto:
    """The graph with its weights, a new copy at each call."""
    made = structure(entry)
    weights.fill(made)
    return made


def feeds(entry: Entry, words: str) -> dict[str, NDArray[Any]]:
    """Inputs of the model by name for one of `entry.sets`."""
    return inputs.feeds(structure(entry), words, entry.sites[0].head_dim)
