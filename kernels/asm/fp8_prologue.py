"""Arguments, the rows and tiles of the wave, query fragments, constants."""

from __future__ import annotations

from zyfa_ort.kernels.asm import fp8_fetch
from zyfa_ort.kernels.asm.emit import KernelArgument, offsets
from zyfa_ort.kernels.asm.fp8_config import (
    ARGUMENTS,
    BLOCK_ROWS,
    FIRST_ARGUMENTS,
    GROUP_ROWS,
    LOG2E,
    NO_ANCHOR,
    PREFETCH,
    TRACE_ARGUMENTS,
    VALUE_DIM,
    WAVE_BYTES,
    Fp8Config,
)  # fmt: skip
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.fp8_values import keep_only_nan
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import VCC, Register

ALL_ARGUMENTS = ARGUMENTS + TRACE_ARGUMENTS
OFFSETS = offsets(ALL_ARGUMENTS)
RAW_BUFFER = 0x00020000
UNIT_SCALES = 0x7F7F7F7F  # E8M0 of 1.0 in every byte
ONES = 0x38383838  # e4m3 of 1.0 in every byte
NEEDED_AT_ONCE = 2  # tiles that must be there before the first product phase
FAR = 0x3FFFFFFF  # a key position beyond every key

Arguments = dict[str, Register]


def load(p: Program, r: Roles, wanted: list[KernelArgument]) -> tuple[Register, Arguments]:
    """Consecutive arguments by name, and the block they are in (to be released)."""
    first = OFFSETS[wanted[0].name]
    words = (OFFSETS[wanted[-1].name] + wanted[-1].bytes - first) // 4
    block = r.scalar.take("arguments", words, align=4)
    at = 0
    while at < words:
        count = next(n for n in (16, 8, 4, 2, 1) if n <= words - at and at % min(n, 4) == 0)
        loader = getattr(p, "s_load_dword" + (f"x{count}" if count > 1 else ""))
        loader(block[at] if count == 1 else block[at : at + count], r.kernarg, first + 4 * at)
        at += count
    loaded = {}
    for argument in wanted:
        at, count = (OFFSETS[argument.name] - first) // 4, argument.bytes // 4
        loaded[argument.name] = block[at] if count == 1 else block[at : at + count]
    return block, loaded


def add_product(p: Program, r: Roles, base: Register, stride: Register, count: Register) -> None:
    """base += stride (64-bit) * count (32-bit, not negative)."""
    low, high = r.scratch[0], r.scratch[1]
    p.s_mul_i32(low, stride[0], count)
    p.s_mul_hi_u32(high, stride[0], count)
    p.s_add_u32(base[0], base[0], low)
    p.s_addc_u32(base[1], base[1], high)
    p.s_mul_i32(low, stride[1], count)
    p.s_add_u32(base[1], base[1], low)


def write(p: Program, r: Roles, config: Fp8Config) -> None:
    block, given = load(p, r, FIRST_ARGUMENTS)
    _wave_and_rows(p, r, given)
    kv_head = _kv_head(p, r, given)
    # Loads that depend on arguments, all before the first wait for one of them.
    key_range = _load_key_range(p, r, given)
    scales = [
        _load_scale(p, r, given, "q", r.head),
        _load_scale(p, r, given, "k", kv_head),
        _load_scale(p, r, given, "v", kv_head),
    ]
    p.s_mov_b32(r.resource[3], RAW_BUFFER)
    _bases(p, r, config, given, kv_head)
    _fetch_offsets(p, r)
    _key_range(p, r, given, key_range)
    _tiles(p, r, given, key_range[0], key_range[1])
    # The tiles are on their way as early as can be; the rest is written while they are.
    p.s_mov_b32(r.index, 0)
    for ahead in range(PREFETCH):
        if ahead == NEEDED_AT_ONCE:
            _load_query(p, r, config, given)
        fp8_fetch.fetch(p, r, config, ahead)
    _constants(p, r)
    _lds_addresses(p, r, config)
    _scales(p, r, given, scales)
    _flip_query(p, r)
    r.scalar.release(block, kv_head, key_range, *scales)


def _wave_and_rows(p: Program, r: Roles, given: Arguments) -> None:
    p.v_and_b32(r.item, 0x3FF, r.item)
    p.v_lshrrev_b32(r.temporary[0], 6, r.item)
    p.v_readfirstlane_b32(r.wave, r.temporary[0])
    p.v_and_b32(r.item, 63, r.item, note="from here on the lane")
    # Causal blocks see more keys the later they are: the longest start first.
    last = r.scratch[0]
    p.s_sub_u32(last, given["queries"], 1)
    p.s_lshr_b32(last, last, BLOCK_ROWS.bit_length() - 1)
    p.s_sub_u32(last, last, r.block)
    p.s_cmp_eq_u32(given["causal"], 0)
    p.s_cselect_b32(r.block, r.block, last)
    p.s_lshl_b32(r.wave_bytes, r.wave, WAVE_BYTES.bit_length() - 1)
    p.s_lshl_b32(r.first_row, r.block, BLOCK_ROWS.bit_length() - 1)
    p.s_lshl_b32(r.scratch[0], r.wave, GROUP_ROWS.bit_length() - 1)
    p.s_add_u32(r.first_row, r.first_row, r.scratch[0])


def _kv_head(p: Program, r: Roles, given: Arguments) -> Register:
    """head / (query heads per key head), by the rounded-up reciprocal; 0 stands for one query head per key head."""
    kv_head = r.scalar.take("key head")
    p.s_mul_hi_u32(kv_head, r.head, given["group_reciprocal"])
    p.s_cmp_eq_u32(given["group_reciprocal"], 0)
    p.s_cselect_b32(kv_head, r.head, kv_head)
    return kv_head


def _bases(p: Program, r: Roles, config: Fp8Config, given: Arguments, kv_head: Register) -> None:
    for base, name, letter in ((r.key_base, "key", "k"), (r.value_base, "value", "v")):
        p.s_mov_b64(base, given[name])
        add_product(p, r, base, given[f"{letter}_batch"], r.batch)
        add_product(p, r, base, given[f"{letter}_head"], kv_head)
        p.s_and_b32(base[1], base[1], 0xFFFF, note="the rest of a buffer resource's word")
    for target, name in (
        (r.key_row, "k_row"),
        (r.value_row, "v_row"),
        (r.keys, "keys"),
        (r.causal, "causal"),
    ):
        p.s_mov_b32(target, given[name])
    p.s_sub_i32(r.key_slack, r.key_row, config.head_dim)
    p.s_sub_i32(r.value_slack, r.value_row, VALUE_DIM)


def _load_key_range(p: Program, r: Roles, given: Arguments) -> Register:
    """[start, end) of the batch's visible keys, when there is a table."""
    both, table, where = r.scalar.take("key range", 2), given["key_range"], r.pair[0]
    p.s_mov_b64(both, 0)
    p.s_cmp_eq_u64(table, 0)
    p.s_cbranch_scc1("no_table")
    p.s_lshl_b32(r.scratch[0], r.batch, 3)
    p.s_add_u32(where[0], table[0], r.scratch[0])
    p.s_addc_u32(where[1], table[1], 0)
    p.s_load_dwordx2(both, where, 0)
    p.label("no_table")
    return both


def _key_range(p: Program, r: Roles, given: Arguments, both: Register) -> None:
    """All keys without a table."""
    p.s_cmp_eq_u64(given["key_range"], 0)
    p.s_cselect_b32(both[0], 0, both[0])
    p.s_cselect_b32(both[1], r.keys, both[1])


def _tiles(p: Program, r: Roles, given: Arguments, start: Register, end: Register) -> None:
    """The canonical order of tiles: docs/numerics.md, "Order of tiles"."""
    queries, diagonal, window = given["queries"], given["diagonal"], given["window_left"]
    last_key, block_row, row, position = r.scratch[0], r.scratch[1], r.scratch[2], r.scratch[3]
    p.s_sub_i32(last_key, end, 1)

    def key_of(target: Register, row: Register) -> None:
        """Last key that the causal rule leaves the row, without regard to `end`."""
        p.s_add_i32(target, row, diagonal)
        p.s_cmp_eq_u32(r.causal, 0)
        p.s_cselect_b32(target, FAR, target)

    def last_tile(target: Register, row: Register) -> None:
        key_of(target, row)
        p.s_min_i32(target, target, last_key)
        p.s_ashr_i32(target, target, 6)

    p.s_lshl_b32(block_row, r.block, BLOCK_ROWS.bit_length() - 1)
    last_row = r.scratch[4]
    p.s_sub_i32(last_row, queries, 1)
    p.s_add_i32(row, block_row, BLOCK_ROWS - 1)
    p.s_min_i32(row, row, last_row)
    last_tile(r.top_tile, row)
    p.s_add_i32(row, r.first_row, GROUP_ROWS - 1)
    p.s_min_i32(row, row, last_row)
    last_tile(r.last_tile, row)
    # A wave without rows looks at no tile.
    p.s_cmp_lt_i32(last_row, r.first_row)
    p.s_cselect_b32(r.last_tile, -1, r.last_tile)

    p.s_sub_i32(r.edge_tile, r.last_tile, 1)
    p.s_cmp_eq_u32(r.causal, 0)
    p.s_cselect_b32(r.edge_tile, FAR, r.edge_tile)

    # First tile: the window of the block's first row.
    p.s_max_i32(r.first_tile, start, 0)
    p.s_add_i32(position, block_row, diagonal)
    p.s_sub_i32(position, position, window)
    p.s_max_i32(position, position, r.first_tile)
    p.s_cmp_lt_i32(window, 0)
    p.s_cselect_b32(r.first_tile, r.first_tile, position)
    p.s_lshr_b32(r.first_tile, r.first_tile, 6)

    # Descending down to the tile before the block's first diagonal, then ascending.
    turn = r.scratch[5]
    last_tile(turn, block_row)
    p.s_sub_i32(turn, turn, 1)
    p.s_max_i32(turn, turn, r.first_tile)
    p.s_add_i32(position, r.top_tile, 1)
    p.s_cmp_eq_u32(r.causal, 0)
    p.s_cselect_b32(turn, position, turn)
    p.s_sub_i32(r.descending, position, turn)
    p.s_max_i32(r.descending, r.descending, 0)
    p.s_min_i32(r.tiles, turn, position)
    p.s_sub_i32(r.tiles, r.tiles, r.first_tile)
    p.s_max_i32(r.tiles, r.tiles, 0)
    p.s_add_i32(r.tiles, r.tiles, r.descending)
    p.s_cmp_gt_i32(end, start)
    p.s_cselect_b32(r.tiles, r.tiles, 0)

    # Per row: first and last visible key; per wave: which tiles need no mask.
    p.v_and_b32(r.temporary[0], 31, r.item)
    p.v_add_u32(r.temporary[0], r.first_row, r.temporary[0])
    p.v_add_u32(r.limit_high, diagonal, r.temporary[0])
    p.v_mov_b32(r.temporary[1], start)
    p.v_sub_u32(r.temporary[2], r.limit_high, _as_vector(p, r, window))
    p.v_max_i32(r.temporary[2], r.temporary[1], r.temporary[2])
    p.s_cmp_lt_i32(window, 0)
    p.s_cselect_b32(VCC[0], -1, 0)
    p.s_mov_b32(VCC[1], VCC[0])
    p.v_cndmask_b32(r.limit_low, r.temporary[2], r.temporary[1], VCC)
    p.s_cmp_eq_u32(r.causal, 0)
    p.s_cselect_b32(VCC[0], -1, 0)
    p.s_mov_b32(VCC[1], VCC[0])
    p.v_mov_b32(r.temporary[1], last_key)
    p.v_min_i32(r.temporary[2], r.limit_high, r.temporary[1])
    p.v_cndmask_b32(r.limit_high, r.temporary[2], r.temporary[1], VCC)
    key_of(r.mask_above, r.first_row)
    p.s_min_i32(r.mask_above, r.mask_above, last_key)
    p.s_sub_i32(r.mask_above, r.mask_above, 62, note="a tile that begins here or later has masked keys")
    p.s_add_i32(position, r.first_row, GROUP_ROWS - 1)
    p.s_add_i32(position, position, diagonal)
    p.s_sub_i32(position, position, window)
    p.s_max_i32(position, position, start)
    p.s_cmp_lt_i32(window, 0)
    p.s_cselect_b32(r.mask_below, start, position)


def _as_vector(p: Program, r: Roles, scalar: Register) -> Register:
    p.v_mov_b32(r.temporary[3], scalar)
    return r.temporary[3]


def _load_scale(p: Program, r: Roles, given: Arguments, letter: str, head: Register) -> Register:
    """The scale of this (batch, head): strides of 0 for coarser granularities."""
    value, where = r.scalar.take(f"{letter}_scale value"), r.pair["qkv".index(letter)]
    p.s_mul_i32(r.scratch[0], given[f"{letter}_scale_batch"], r.batch)
    p.s_mul_i32(r.scratch[1], given[f"{letter}_scale_head"], head)
    p.s_add_u32(r.scratch[0], r.scratch[0], r.scratch[1])
    p.s_lshl_b32(r.scratch[0], r.scratch[0], 2)
    p.s_add_u32(where[0], given[f"{letter}_scale"][0], r.scratch[0])
    p.s_addc_u32(where[1], given[f"{letter}_scale"][1], 0)
    p.s_load_dword(value, where, 0)
    return value


def _scales(p: Program, r: Roles, given: Arguments, scales: list[Register]) -> None:
    """factor = |scale * q_scale * k_scale * log2 e|, each product rounded; a negative one flips the query's signs."""
    query, key, value = scales
    softmax = given["scale"]
    t = r.temporary
    p.v_mov_b32(t[0], softmax)
    p.v_mul_f32(t[0], query, t[0])
    p.v_mul_f32(t[0], key, t[0])
    p.v_mul_f32(t[0], LOG2E, t[0])
    p.v_readfirstlane_b32(r.factor[0], t[0])
    p.s_mov_b32(r.value_scale, value)
    p.s_and_b32(r.query_flip, r.factor[0], 0x80000000)
    p.s_cmp_lg_u32(r.query_flip, 0)
    p.s_cselect_b32(r.query_flip, 0x80808080, 0)
    p.s_and_b32(r.factor[0], r.factor[0], 0x7FFFFFFF)
    # A factor of 0 makes every visible score 0: as 1 times codes of 0 no -inf meets it.
    p.s_cmp_eq_u32(r.factor[0], 0)
    p.s_cselect_b32(r.query_zero, 1, 0)
    p.s_cselect_b32(r.factor[0], 1.0, r.factor[0])
    p.s_mov_b32(r.factor[1], 0)
    p.v_mov_b32(t[0], r.factor[0])
    p.v_mul_f32(t[0], 8.0, t[0])
    p.v_readfirstlane_b32(r.factor8, t[0])


def _constants(p: Program, r: Roles) -> None:
    p.v_mov_b32(r.anchor, NO_ANCHOR)
    p.v_mov_b32(r.unit_scale, UNIT_SCALES)
    for i in range(8):
        p.v_mov_b32(r.ones[i], ONES)
    for block in (*r.result, r.row_sum):
        for i in range(0, block.count, 2):
            p.v_mov_b64(block[i : i + 2], 0)


def _fetch_offsets(p: Program, r: Roles) -> None:
    """Where in a global tile each lane's 16 bytes come from, so that they land swizzled in LDS.

    Lane l of wave w fills slot l mod 8 of row 8w + l/8; key chunk = slot ^ (row/2 mod 8), value chunk pairs ^ f(row).
    """
    row, slot, t = r.temporary[0], r.temporary[1], r.temporary[2]
    p.v_lshrrev_b32(row, 3, r.item)
    p.s_lshl_b32(r.scratch[0], r.wave, 3)
    p.v_add_u32(row, r.scratch[0], row)
    p.v_and_b32(slot, 7, r.item)
    p.v_bfe_u32(t, row, 1, 3)
    p.v_xor_b32(t, slot, t)
    p.v_mul_lo_u32(r.key_fetch, row, r.key_row)
    p.v_lshl_add_u32(r.key_fetch, t, 4, r.key_fetch)
    _value_swizzle(p, r, t, row)
    p.v_lshlrev_b32(t, 1, t)
    p.v_xor_b32(t, slot, t)
    p.v_mul_lo_u32(r.value_fetch, row, r.value_row)
    p.v_lshl_add_u32(r.value_fetch, t, 4, r.value_fetch)
    if r.rope_fetch is not None:
        _rope_fetch(p, r, r.rope_fetch)


def _rope_fetch(p: Program, r: Roles, target: Register) -> None:
    """Dims 128..191: lane l < 32 of wave w fills slot l mod 4 of row 8w + l/4; chunk = slot ^ (row/4 mod 4)."""
    row, slot, t = r.temporary[0], r.temporary[1], r.temporary[2]
    p.v_bfe_u32(row, r.item, 2, 3)
    p.v_add_u32(row, r.scratch[0], row)
    p.v_and_b32(slot, 3, r.item)
    p.v_bfe_u32(t, row, 2, 2)
    p.v_xor_b32(t, slot, t)
    p.v_mul_lo_u32(target, row, r.key_row)
    p.v_lshl_add_u32(target, t, 4, target)
    p.v_add_u32(target, 128, target)


def _value_swizzle(p: Program, r: Roles, target: Register, key: Register) -> None:
    """f(key) = bit 1 | bit 3 << 1: keeps the transposed reads free of bank conflicts."""
    t = r.temporary[3]
    p.v_bfe_u32(target, key, 1, 1)
    p.v_bfe_u32(t, key, 3, 1)
    p.v_lshl_or_b32(target, t, 1, target)


def _lds_addresses(p: Program, r: Roles, config: Fp8Config) -> None:
    t = r.temporary
    # Keys: row = lane mod 32; chunk = 4 step + 2 half + lane/32, swizzled.
    for index, address in enumerate(r.key_address[:4]):
        p.v_lshrrev_b32(t[0], 5, r.item)
        p.v_add_u32(t[0], 2 * index, t[0])
        p.v_and_b32(t[1], 31, r.item)
        p.v_bfe_u32(t[2], t[1], 1, 3)
        p.v_xor_b32(t[0], t[0], t[2])
        p.v_lshlrev_b32(t[0], 4, t[0])
        p.v_lshl_add_u32(address, t[1], 7, t[0])
    # Dims 128..191: rows of 64 bytes, chunk = 2 half + lane/32.
    for half, address in enumerate(r.key_address[4:]):
        p.v_lshrrev_b32(t[0], 5, r.item)
        p.v_add_u32(t[0], 2 * half, t[0])
        p.v_and_b32(t[1], 31, r.item)
        p.v_bfe_u32(t[2], t[1], 2, 2)
        p.v_xor_b32(t[0], t[0], t[2])
        p.v_lshlrev_b32(t[0], 4, t[0])
        p.v_lshl_add_u32(address, t[1], 6, t[0])
        p.v_add_u32(address, config.rope_base, address)
    # Values: g = lane/16, i = lane mod 16; key = 8 (i/8) + 4 (g/2) + (i/2) mod 4, dim = 16 (g mod 2) + 8 (i mod 2).
    key = t[0]
    p.v_bfe_u32(key, r.item, 1, 2)
    p.v_bfe_u32(t[1], r.item, 5, 1)
    p.v_lshl_or_b32(key, t[1], 2, key)
    p.v_bfe_u32(t[1], r.item, 3, 1)
    p.v_lshl_or_b32(key, t[1], 3, key)
    _value_swizzle(p, r, t[1], key)
    inside = t[2]
    p.v_bfe_u32(inside, r.item, 4, 1)
    p.v_lshlrev_b32(inside, 1, inside)
    p.v_and_or_b32(inside, r.item, 1, inside)
    p.v_lshlrev_b32(inside, 3, inside)
    p.v_lshl_add_u32(inside, key, 7, inside)
    for index, address in enumerate(r.value_address):
        p.v_xor_b32(t[3], index, t[1])
        p.v_lshl_add_u32(address, t[3], 5, inside)
        p.v_add_u32(address, config.key_bytes, address)


def _load_query(p: Program, r: Roles, config: Fp8Config, given: Arguments) -> None:
    """Fragments straight from memory: row = lane mod 32, 16 bytes at dim 64 step + 32 half + 16 (lane/32)."""
    pointer, row_bytes = given["query"], given["q_row"]
    add_product(p, r, pointer, given["q_batch"], r.batch)
    add_product(p, r, pointer, given["q_head"], r.head)
    add_rows(p, r, pointer, row_bytes)
    set_resource(p, r, pointer, given["queries"], row_bytes, config.head_dim)
    address = r.temporary[0]
    p.v_and_b32(r.temporary[1], 31, r.item)
    p.v_mul_lo_u32(address, r.temporary[1], row_bytes)
    p.v_lshrrev_b32(r.temporary[1], 5, r.item)
    p.v_lshl_add_u32(address, r.temporary[1], 4, address)
    for step, fragment in enumerate(r.query):
        for half in range(2):
            p.buffer_load_dwordx4(
                fragment[4 * half : 4 * half + 4],
                address,
                r.resource,
                0,
                modifiers=f"offen offset:{64 * step + 32 * half}",
            )


def _flip_query(p: Program, r: Roles) -> None:
    """A negative factor flips the codes' signs, a factor of 0 leaves only NaN."""
    p.s_or_b32(r.scratch[0], r.query_flip, r.query_zero)
    p.s_cbranch_scc1("change_query")
    p.label("query_ready")

    def change() -> None:
        p.label("change_query")
        registers = [fragment[i] for fragment in r.query for i in range(8)]
        for register in registers:
            p.v_xor_b32(register, r.query_flip, register)
        p.s_cmp_eq_u32(r.query_zero, 0)
        p.s_cbranch_scc1("query_ready")
        for register in registers:
            keep_only_nan(p, register, r.temporary[0], r.temporary[1])
        p.s_branch("query_ready")

    p.aside(change)


def add_rows(p: Program, r: Roles, base: Register, row_bytes: Register) -> None:
    """base += row_bytes * first row of the wave."""
    wide = r.pair[0]
    p.s_mov_b32(wide[0], row_bytes)
    p.s_mov_b32(wide[1], 0)
    add_product(p, r, base, wide, r.first_row)


def set_resource(
    p: Program, r: Roles, base: Register, rows: Register, row_bytes: Register | int, used: int
) -> None:
    """Buffer resource over the wave's rows at `base`, as far as they are below `rows`; reads beyond give 0."""
    count, last = r.scratch[0], r.scratch[1]
    p.s_sub_i32(count, rows, r.first_row)
    p.s_min_i32(count, count, GROUP_ROWS)
    p.s_sub_i32(last, count, 1)
    p.s_mul_i32(last, last, row_bytes)
    p.s_add_u32(last, last, used)
    p.s_cmp_gt_i32(count, 0)
    p.s_cselect_b32(r.resource[2], last, 0)
    p.s_mov_b32(r.resource[0], base[0])
    p.s_and_b32(r.resource[1], base[1], 0xFFFF)
