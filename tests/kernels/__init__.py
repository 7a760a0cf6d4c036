"""Tests of zyfa_ort.kernels and what they share.

A package, so that `kernels.emulator` means the helpers here and not the room of the same name at the top of the project.
"""
