"""The registers of the FP8 prefill kernel and what each is for."""

from __future__ import annotations

from zyfa_ort.kernels.asm.fp8_config import VALUE_DIM, Fp8Config
from zyfa_ort.kernels.asm.registers import Register, RegisterFile


class Roles:
    """Vector and scalar registers by role."""

    def __init__(self, config: Fp8Config) -> None:
        v = self.vector = RegisterFile("v", 256, reserved=1)
        self.item = Register("v", 0, 1, "packed work-item id")
        self.query = [v.take(f"query, dims {64 * i}..{64 * i + 63}", 8) for i in range(config.k_steps)]
        self.scores = [v.take(f"scores of keys {32 * t}..{32 * t + 31}", 16) for t in range(2)]
        self.result = [v.take(f"output, dims {32 * i}..{32 * i + 31}", 16) for i in range(VALUE_DIM // 32)]
        self.row_sum = v.take("row sums (all rows alike)", 16)
        self.key = [v.take(f"key fragment {i}", 8) for i in range(4)]
        # Behind the scores and in front of the next keys their registers are free.
        self.counts = Register("v", self.key[2].first, 16, "NaN values that a row sees")
        self.value = [v.take(f"value fragment {i}", 8) for i in range(4)]
        self.high = v.take("probabilities, e4m3", 8)
        self.low = v.take("probabilities, residual", 8) if config.edges == "hilo" else None
        self.ones = v.take("e4m3 ones", 8)
        self.key_address = [v.take(f"LDS address of key chunk {i}") for i in range(2 * config.k_steps)]
        self.value_address = [
            v.take(f"LDS address of values, dims {32 * i}..") for i in range(VALUE_DIM // 32)
        ]
        self.key_fetch = v.take("global offset of the lane's key chunk, dims 0..127")
        self.rope_fetch = (
            v.take("global offset of the lane's key chunk, dims 128..191") if config.k_steps == 3 else None
        )
        self.value_fetch = v.take("global offset of the lane's value chunk")
        self.anchor = v.take("row anchor, log2")
        self.row_top = v.take("largest score of the row in the tile")
        self.limit_high = v.take("last visible key of the row")
        self.limit_low = v.take("first visible key of the row")
        self.block_scale = v.take("E8M0 scale of the tile's probabilities")
        self.low_scale = v.take("E8M0 scale of the residual")
        self.unit_scale = v.take("E8M0 scale of one")
        self.offset = v.take("126 - 8 (anchor + block exponent)")
        self.temporary = v.take("temporaries", 4)

        s = self.scalar = RegisterFile("s", 100, reserved=5)
        self.kernarg = Register("s", 0, 2, "kernel arguments")
        # Heads are the fastest axis of the grid: the longest blocks of all heads come first, and the blocks of a head
        # go to one die when there are 8 heads or a multiple, where they share its L2.
        self.head = Register("s", 2, 1, "query head: workgroup x")
        self.block = Register("s", 3, 1, "block of query rows: workgroup y")
        self.batch = Register("s", 4, 1, "batch: workgroup z")
        self.key_base = s.take("key of this batch and head", 2)
        self.value_base = s.take("value of this batch and head", 2)
        self.resource = s.take("buffer resource", 4, align=4)
        self.wave = s.take("wave")
        self.index = s.take("number of the tile")
        self.first_row = s.take("first query row of the wave")
        self.last_tile = s.take("tile of the diagonal of the wave's last row")
        self.top_tile = s.take("first tile of the descending part")
        self.first_tile = s.take("first tile of the ascending part")
        self.descending = s.take("tiles in the descending part")
        self.tiles = s.take("tiles in all")
        self.edge_tile = s.take("edge tiles of the diagonal begin here")
        self.mask_above = s.take("keys from here on need a mask")
        self.mask_below = s.take("keys before this need a mask")
        self.factor = s.take("scores to log2, and a register beside it", 2)
        self.factor8 = s.take("scores to codes")
        self.value_scale = s.take("real value of a value code")
        self.query_zero = s.take("whether the query codes become 0")
        self.query_flip = s.take("sign flip of the query codes")
        self.wave_bytes = s.take("where the wave's rows begin in a stage")
        self.key_slack = s.take("bytes of a key row behind its dims")
        self.value_slack = s.take("bytes of a value row behind its dims")
        self.key_row = s.take("bytes of a key row")
        self.value_row = s.take("bytes of a value row")
        self.keys = s.take("keys in memory")
        self.causal = s.take("causal")
        self.scratch = [s.take(f"scratch {i}") for i in range(6)]
        self.pair = [s.take(f"scratch pair {i}", 2) for i in range(3)]

    def enter_loop(self) -> None:
        """Scalars of the tile loop take the registers of the arguments, which the kernel has used by then."""
        s = self.scalar
        self.tile = s.take("the tile")
        self.visible = s.take("whether the wave sees the tile")
        self.next_tile = s.take("the next tile")
        self.next_visible = s.take("whether the wave sees the next tile")
        self.special = s.take("whether the tile is not a plain interior one")
        self.edge = s.take("whether the tile is an edge tile")
        self.masked = s.take("whether the tile has hidden keys: 1 above, 2 below")
        self.stage = s.take("LDS stage of the tile")
        self.key_stage = s.take("LDS stage of the next tile")
        self.value_stage = s.take("LDS stage of the tile whose probabilities are at hand")
        self.terms = s.take("what the probabilities at hand are: none, one or two terms, hidden keys")
        self.masked_tile = s.take("the tile whose probabilities are at hand, if it has hidden keys")
