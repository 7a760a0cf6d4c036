"""The gfx950 generator and its assembler driver."""
