"""What an FP8 prefill kernel is made for, and the numbers that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.asm.emit import KernelArgument

LOG2E = 1.44269504
LN2 = 0.69314718
ANCHOR_CODE = 126.0  # e4m3 code of 448: the row maximum of an interior tile lands here
# By what v_cvt_pk_u8_f32 of the device does: what is added to a code before it is converted, and the largest float that
# still becomes a code of at most 126 (127 would be NaN).
CODE_SHIFT = {"nearest": 0.0, "truncate": 0.5}
MOST_IN_RANGE = {"nearest": ANCHOR_CODE + 0.5, "truncate": 126.99999237060547}
UNIT = 8.80708  # log2 of what a probability of one is worth in an edge tile: 8 + (6 + 0.45665) / 8
TAU = 0.25  # log2 units a tile may exceed the anchor before the row is re-anchored
BLOCK_RANGE = 60.0  # clamp of the block exponent
# Stands for "no key seen yet": finite, so that nothing becomes NaN. Beyond it 126 - 8e overflows on every device.
NO_ANCHOR = -4e37

WAVES = 8
WAVE_LANES = 64
GROUP_ROWS = 32  # query rows of a wave
BLOCK_ROWS = WAVES * GROUP_ROWS
TILE_KEYS = 64
VALUE_DIM = 128
WAVE_BYTES = 1024  # what one LDS-DMA instruction of a wave brings
OUTPUT_BLOCKS = VALUE_DIM // 32
KEY_FRAGMENTS = 4  # of 32 keys and 64 dims, in registers
PREFETCH = 3  # tiles between a fetch into LDS and its use
STAGES = 8  # at least PREFETCH + 2: the other wave group still multiplies V of the tile before the last

# Bits of the scalar `terms`: what the product phase does with the probabilities at hand.
ONE_TERM, TWO_TERMS = 1, 2
HIDDEN_KEYS = 4  # values of hidden keys may be NaN

# What the kernel begins with, then what it ends with: each part is loaded at once. Strides of tensors are in bytes, those
# of scales in elements.
FIRST_ARGUMENTS = [
    *(KernelArgument(name, 8, pointer=True) for name in (
        "query", "key", "value", "q_scale", "k_scale", "v_scale", "key_range")),
    *(KernelArgument(f"{name}_{axis}", 8) for name in ("q", "k", "v") for axis in ("batch", "head")),
    *(KernelArgument(f"{name}_row", 4) for name in ("q", "k", "v")),
    *(KernelArgument(f"{name}_scale_{axis}", 4) for name in ("q", "k", "v") for axis in ("batch", "head")),
    *(KernelArgument(name, 4) for name in (
        "queries", "keys", "group_reciprocal", "causal", "diagonal", "window_left", "scale")),
]  # fmt: skip
LAST_ARGUMENTS = [
    *(KernelArgument(name, 8, pointer=True) for name in ("output", "lse", "sinks")),
    *(KernelArgument(f"{name}_{axis}", 8) for name in ("o", "lse") for axis in ("batch", "head")),
    *(KernelArgument(name, 4) for name in ("o_row", "o_queries")),
]  # fmt: skip
ARGUMENTS = FIRST_ARGUMENTS + LAST_ARGUMENTS

TRACE_WORDS = 20  # per lane and tile: 8 high, 8 low, anchor, scale byte, terms, unused
TRACE_ARGUMENTS = [KernelArgument("trace", 8, pointer=True)] + [
    KernelArgument(f"trace_{axis}", 8) for axis in ("batch", "head", "group")
]


@dataclass(frozen=True)
class Fp8Config:
    """Head dim of query and key (128, or 192 for the MLA shape), kind of edge tiles, output type, what v_cvt_pk_u8_f32 of
    the device does; `trace` for tests only."""

    head_dim: int = 128
    edges: str = "hilo"  # "none": Lean P in every tile
    output: str = "bf16"  # "f16", "f32"
    conversion: str = "nearest"  # "truncate"
    trace: bool = False  # stores the bytes of P, anchors and exponents of every tile

    def __post_init__(self) -> None:
        for field, allowed in (
            ("head_dim", (128, 192)),
            ("edges", ("hilo", "none")),
            ("output", ("bf16", "f16", "f32")),
            ("conversion", tuple(CODE_SHIFT)),
        ):
            if getattr(self, field) not in allowed:
                raise ValueError(f"Fp8Config: {field} must be one of {allowed}, got {getattr(self, field)!r}")

    @property
    def name(self) -> str:
        shape = "d128" if self.head_dim == 128 else "d192_v128"
        conversion = "" if self.conversion == "nearest" else f"_{self.conversion}"
        return f"fp8_prefill_{shape}_{self.edges}_{self.output}{conversion}" + (
            "_trace" if self.trace else ""
        )

    @property
    def k_steps(self) -> int:
        """Matrix instructions per 32 x 32 scores."""
        return self.head_dim // 64

    @property
    def key_bytes(self) -> int:
        """LDS of one key tile."""
        return TILE_KEYS * self.head_dim

    @property
    def rope_base(self) -> int:
        """Where in a key tile the rows of dims 128..191 begin: rows of 128 and of 64 bytes each have their own swizzle."""
        return TILE_KEYS * 128

    @property
    def value_bytes(self) -> int:
        return TILE_KEYS * VALUE_DIM

    @property
    def stage_bytes(self) -> int:
        return self.key_bytes + self.value_bytes

    @property
    def lds_bytes(self) -> int:
        return STAGES * self.stage_bytes


def arguments(config: Fp8Config) -> list[KernelArgument]:
    return ARGUMENTS + TRACE_ARGUMENTS if config.trace else ARGUMENTS


def shipped() -> list[Fp8Config]:
    """The configurations that are built with the package."""
    return [
        Fp8Config(head_dim, edges, output, conversion)
        for conversion in CODE_SHIFT
        for head_dim in (128, 192)
        for edges in ("hilo", "none")
        for output in ("bf16", "f16", "f32")
    ]


def by_name(name: str) -> Fp8Config:
    """Raises ValueError that lists the names there are."""
    for config in shipped():
        if config.name == name:
            return config
    raise ValueError(f"config {name!r}: expected one of {', '.join(config.name for config in shipped())}")
