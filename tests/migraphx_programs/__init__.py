"""Programs of the real MIGraphX, and helpers that get it, run it and put it on the emulated GPU."""
