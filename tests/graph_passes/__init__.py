"""Tests of zyfa_ort.graph_passes and what they share.

A package, so that `graph_passes.exports` means the helper here and not the room of the same name at the top of the project.
"""
