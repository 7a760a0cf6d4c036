"""The probe kernels, a row each: which instruction, on which words, what comes out."""

from __future__ import annotations

from zyfa_ort.kernels.asm.probe.text import FIRST_FREE, LANES, MATRIX_DONE, ProbeKernel, load, store

DMA_BYTES = 4096  # of LDS that the LDS-DMA probe looks at
DMA_M0, DMA_OFFSET = 256, 64
RATE_WAVES, RATE_LOOPS, RATE_UNROLLED = 8, 16, 64
RATE_INSTRUCTIONS = RATE_LOOPS * RATE_UNROLLED
# Instruction with a register pair {p}, a register {a} and another one {b} of its own: none waits for the one before.
RATES = {
    "v_fma_f32": "v_fma_f32 v{a}, v{a}, v{a}, v{a}",
    "v_cvt_pk_u8_f32": "v_cvt_pk_u8_f32 v{a}, v{b}, 1, v{a}",
    "v_cvt_pk_fp8_f32": "v_cvt_pk_fp8_f32 v{a}, v{b}, v{b}",
    "v_permlane32_swap_b32": "v_permlane32_swap_b32 v{a}, v{b}",
    "v_exp_f32": "v_exp_f32_e32 v{a}, v{a}",
    "v_pk_fma_f32": "v_pk_fma_f32 v[{p}], v[{p}], v[{p}], v[{p}]",
}


def _elementwise(
    name: str, inputs: int, instructions: list[str], outputs: int, saturating: bool = True
) -> ProbeKernel:
    """Inputs in v8.., results in v40..; they begin as 0."""
    clear = "\n".join(f"  v_mov_b32_e32 v{40 + i}, 0" for i in range(outputs))
    # Vector results placed by op_sel want a wait state before they are merged.
    code = "\n".join(f"  {one}\n  s_nop 1" for one in instructions)
    return ProbeKernel(
        name, "\n".join([load(8, inputs), clear, code, store(40, outputs)]), saturating=saturating
    )


def _matrix(name: str, a: int, c: int, instructions: list[str], scales: int = 0) -> ProbeKernel:
    """A and B of `a` words in v8.. and v16.., scales of A and B in v24 and v25, C of `c` words in v32..v47; results of
    16 or 4 words each in v48.."""
    parts = [load(8, a), load(16, a, at=a), load(24, scales, at=2 * a) if scales else ""]
    parts += [load(32, c, at=2 * a + scales) if c else "", "  s_nop 1"]
    words = 4 if "16x16" in instructions[0] else 16
    for index, one in enumerate(instructions):
        parts += [f"  {one}", f"  {MATRIX_DONE}", store(48, words, at=words * index)]
        # The next one may not overwrite what a store still reads.
        parts += ["  s_waitcnt vmcnt(0)"]
    return ProbeKernel(name, "\n".join(filter(None, parts)))


def _scaled(a: int, b: int) -> str:
    """The scaled product with byte a of A's scales and byte b of B's."""
    return (
        "v_mfma_scale_f32_32x32x64_f8f6f4 v[48:63], v[8:15], v[16:23], 0, v24, v25"
        f" op_sel:[{a & 1},{b & 1},0] op_sel_hi:[{a >> 1},{b >> 1},0]"
    )


SCALE_BYTES = ((0, 0), (1, 2), (2, 3), (3, 1))


def _transposed(name: str) -> ProbeKernel:
    """Lane l writes words 0 and 1 at 8 l, then reads from the address in word 2."""
    return ProbeKernel(
        f"probe_{name}",
        "\n".join(
            [
                load(8, 3),
                "  v_lshlrev_b32_e32 v12, 1, v0",
                "  ds_write_b64 v12, v[8:9]",
                "  s_waitcnt lgkmcnt(0)",
                f"  {name} v[14:15], v10",
                "  s_waitcnt lgkmcnt(0)",
                store(14, 2),
            ]
        ),
        lds_bytes=8 * LANES,
    )


def _lds_dma() -> ProbeKernel:
    """Words 0 to 15 are the data and again what LDS holds before, inverted. Word 16: the byte offset each lane fetches;
    word 17: lane 0 the bytes in range, lanes 1 and 2 EXEC. Out: the LDS."""
    fill = [
        line
        for word in range(16)
        for line in (f"  v_not_b32_e32 v9, v{32 + word}", f"  ds_write_b32 v0, v9 offset:{256 * word}")
    ]
    back = [f"  ds_read_b32 v{32 + word}, v0 offset:{256 * word}" for word in range(16)]
    return ProbeKernel(
        "probe_lds_dma",
        "\n".join(
            [
                load(32, 16),
                load(8, 1, at=16),
                load(10, 1, at=17),
                *fill,
                "  s_waitcnt lgkmcnt(0)",
                "  s_barrier",
                "  v_readlane_b32 s10, v10, 0",
                "  v_readlane_b32 s12, v10, 1",
                "  v_readlane_b32 s13, v10, 2",
                "  s_mov_b32 s8, s4",
                "  s_and_b32 s9, s5, 0xffff",
                "  s_mov_b32 s11, 0x00020000",
                f"  s_mov_b32 m0, {DMA_M0}",
                "  s_nop 4",
                "  s_mov_b64 exec, s[12:13]",
                f"  buffer_load_dwordx4 v8, s[8:11], 0 offen offset:{DMA_OFFSET} lds",
                "  s_mov_b64 exec, -1",
                "  s_waitcnt vmcnt(0)",
                "  s_barrier",
                *back,
                "  s_waitcnt lgkmcnt(0)",
                store(32, 16),
            ]
        ),
        lds_bytes=DMA_BYTES,
    )


def rate_kernel(mnemonic: str) -> str:
    return f"probe_rate_{mnemonic.removeprefix('v_')}"


def _loop(mnemonic: str, label: str) -> list[str]:
    lines = []
    for index in range(RATE_UNROLLED):
        pair = 16 + 2 * (index % 16)
        lines.append("  " + RATES[mnemonic].format(p=f"{pair}:{pair + 1}", a=pair, b=pair + 1))
    head = [f"  s_movk_i32 s3, {RATE_LOOPS}", f".L{label}:"]
    return [*head, *lines, "  s_sub_u32 s3, s3, 1", "  s_cmp_lg_u32 s3, 0", f"  s_cbranch_scc1 .L{label}"]


def _clock(register: int) -> list[str]:
    return [f"  s_memtime s[{register}:{register + 1}]", "  s_waitcnt lgkmcnt(0)"]


def _readings(first: int, count: int) -> list[str]:
    """s[first].. of wave w into the `count` words from `count` w."""
    out = [f"  v_mov_b32_e32 v{FIRST_FREE + i}, s{first + i}" for i in range(count)]
    stores = [f"  global_store_dword v15, v{FIRST_FREE + i}, s[6:7] offset:{4 * i}" for i in range(count)]
    place = [f"  s_mul_i32 s2, s2, {4 * count}", "  s_mov_b64 exec, 1", "  v_mov_b32_e32 v15, s2"]
    return [*place, *out, *stores]


OPERANDS = [f"  v_mov_b32_e32 v{register}, 1.0" for register in range(16, 48)]


def _rate(mnemonic: str) -> ProbeKernel:
    """Every wave reads the clock, runs the loop, reads the clock."""
    parts = [*OPERANDS, "  s_barrier", *_clock(8), *_loop(mnemonic, mnemonic), *_clock(10), *_readings(8, 4)]
    return ProbeKernel(rate_kernel(mnemonic), "\n".join(parts), waves=RATE_WAVES)


def _placement() -> ProbeKernel:
    """Waves 0 and 4 run a loop while the others wait, then waves 0 and 1: the clock before and behind each."""
    parts = [*OPERANDS]
    for turn, (others, register) in enumerate(
        ((["  s_and_b32 s3, s2, 3", "  s_cmp_lg_u32 s3, 0"], 8), (["  s_cmp_gt_u32 s2, 1"], 12))
    ):
        parts += ["  s_barrier", *_clock(register), *others, f"  s_cbranch_scc1 .Lpassed_{turn}"]
        parts += [*_loop("v_fma_f32", f"placed_{turn}"), f".Lpassed_{turn}:", *_clock(register + 2)]
    return ProbeKernel("probe_placement", "\n".join([*parts, *_readings(8, 8)]), waves=RATE_WAVES)


KERNELS: tuple[ProbeKernel, ...] = (
    _elementwise("probe_byte", 2, [
        *(f"v_mov_b32_e32 v{41 + n}, v9" for n in range(4)),
        "v_cvt_pk_u8_f32 v40, v8, 0, 0",
        *(f"v_cvt_pk_u8_f32 v{41 + n}, v8, {n}, v{41 + n}" for n in range(4)),
    ], 5),
    *(_elementwise(f"probe_fp8_{kind}", 2, [
        "v_cvt_pk_fp8_f32 v40, v8, v9", "v_cvt_pk_fp8_f32 v40, v9, v8 op_sel:[0,0,1]",
    ], 1, saturating=kind == "saturating") for kind in ("saturating", "overflowing")),
    _elementwise("probe_fp8_values", 1, [
        "v_cvt_pk_f32_fp8_e32 v[40:41], v8", "v_cvt_pk_f32_fp8_sdwa v[42:43], v8 src0_sel:WORD_1",
    ], 4),
    _elementwise("probe_max", 3, ["v_max3_f32 v40, v8, v9, v10", "v_maximum3_f32 v41, v8, v9, v10"], 2),
    _elementwise("probe_exp", 1, ["v_exp_f32_e32 v40, v8"], 1),
    _elementwise("probe_swap", 2, [
        "v_mov_b32_e32 v40, v8", "v_mov_b32_e32 v41, v9", "v_mov_b32_e32 v42, v8", "v_mov_b32_e32 v43, v9",
        "v_permlane32_swap_b32 v40, v41", "v_permlane16_swap_b32 v42, v43",
    ], 4),
    _matrix("probe_matrix_fp8", 8, 16, ["v_mfma_f32_32x32x64_f8f6f4 v[48:63], v[8:15], v[16:23], v[32:47]"]),
    _matrix("probe_matrix_bf16", 4, 16, ["v_mfma_f32_32x32x16_bf16 v[48:63], v[8:11], v[16:19], v[32:47]"]),
    _matrix("probe_matrix_bf16_small", 4, 4, ["v_mfma_f32_16x16x32_bf16 v[48:51], v[8:11], v[16:19], v[32:35]"]),
    _matrix("probe_scaled", 8, 0, [_scaled(0, 0)], scales=2),
    _matrix("probe_scale_bytes", 8, 0, [_scaled(a, b) for a, b in SCALE_BYTES], scales=2),
    _transposed("ds_read_b64_tr_b8"),
    _transposed("ds_read_b64_tr_b16"),
    _lds_dma(),
    *(_rate(mnemonic) for mnemonic in RATES),
    _placement(),
)  # fmt: skip
