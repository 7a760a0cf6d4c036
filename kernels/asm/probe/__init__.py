"""Tiny gfx950 kernels that ask a device what no document says, and what each answer means for the kernels of the package."""
