"""The index and the archive hold the same files, and every input set can be made."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models import archive, corpus, weights
from models.inputs import InputSet

ENTRIES = corpus.entries()


def test_index_and_archive_agree():
    assert [f"{entry.file}.onnx" for entry in ENTRIES] == sorted(archive.read(corpus.GRAPHS))


def test_entries_are_consistent():
    for entry in ENTRIES:
        assert entry.exporter in corpus.exporters(), entry
        assert entry.sites and entry.sets and len(set(entry.sets)) == len(entry.sets), entry
        assert set(entry.faults) <= set(entry.sets), entry
        assert entry.file.startswith(f"{entry.family}__{entry.exporter}__"), entry


def test_graphs_hold_no_weights_and_get_them_all_back():
    for entry in ENTRIES:
        held = corpus.structure(entry)
        taken = [one.name for one in held.graph.initializer if one.external_data]
        assert taken, entry
        kept = sum(len(one.raw_data) for one in held.graph.initializer)
        assert kept < 600_000, entry  # rotary tables of 256 positions
        weights.fill(held)
        for one in held.graph.initializer:
            assert not one.external_data
            assert one.name not in taken or len(one.raw_data) >= math.prod(one.dims), entry


def test_every_input_set_can_be_made():
    for entry in ENTRIES:
        names = {value.name for value in corpus.structure(entry).graph.input}
        for words in entry.sets:
            made = corpus.feeds(entry, words)
            assert made.keys() == names
            again = corpus.feeds(entry, words)
            assert all(np.array_equal(made[name], again[name]) for name in names)


def test_words_of_an_input_set():
    assert InputSet.parse("2x12+5 left3") == InputSet(2, 12, past=5, left=3)
    assert InputSet.parse("1x17/14") == InputSet(1, 17, decoded=14)
    np.testing.assert_array_equal(InputSet(2, 3, past=1, left=2).mask(), [[1, 1, 1, 1], [0, 0, 1, 1]])
    np.testing.assert_array_equal(InputSet(1, 3, past=2).positions(), [[2, 3, 4]])
    np.testing.assert_array_equal(InputSet(1, 4, right=1).mask(), [[1, 1, 1, 0]])


@pytest.mark.parametrize("words", ["", "2", "2x", "2x12 left", "2x12 up3", "2x12+", "a2x12"])
def test_other_words_are_refused(words):
    with pytest.raises(ValueError, match="expected words like"):
        InputSet.parse(words)
