"""Developers' benchmarks of the CPU kernels; `python -m benchmarks.cpu --help` in the folder tests."""
