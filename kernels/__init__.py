"""Device code: hardware facts, the gfx950 generator, HIP kernels and the emulator."""
