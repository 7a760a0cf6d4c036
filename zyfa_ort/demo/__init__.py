"""The main job on a real model: export SmolLM2, fuse it at every precision, compare, and let it talk (`make demo`)."""
