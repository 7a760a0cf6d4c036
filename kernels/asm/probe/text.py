"""Assembly text of the probe kernels: what all of them share.

A kernel takes two pointers, input and output: arrays of words of a wave, word j of lane l at index 64 j + l. Probes are
written by hand, wait states too: what they ask about are the rules that a generator would take for granted.
"""

from __future__ import annotations

from dataclasses import dataclass

LANES = 64
ROW = 4 * LANES  # bytes of one word of all lanes
# Immediate offsets reach 4,095 bytes, so that every 16 words need an address of their own: v0 to v4.
WORDS_PER_ADDRESS = 16
MAX_WORDS = 80
FIRST_FREE = 5  # vector registers below hold the addresses
MATRIX_DONE = "s_nop 15\n  s_nop 7"  # after the longest matrix instruction, before its result is read

PROLOGUE = f"""\
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32_e32 v4, 0x3ff, v0
  v_and_b32_e32 v0, 63, v4
  v_lshrrev_b32_e32 v4, 6, v4
  s_nop 0
  v_readfirstlane_b32 s2, v4
  v_lshlrev_b32_e32 v0, 2, v0
  v_add_u32_e32 v1, {WORDS_PER_ADDRESS * ROW:#x}, v0
  v_add_u32_e32 v2, {2 * WORDS_PER_ADDRESS * ROW:#x}, v0
  v_add_u32_e32 v3, {3 * WORDS_PER_ADDRESS * ROW:#x}, v0
  v_add_u32_e32 v4, {4 * WORDS_PER_ADDRESS * ROW:#x}, v0
  s_waitcnt lgkmcnt(0)"""


@dataclass(frozen=True)
class ProbeKernel:
    """One kernel: instructions between the loading of the pointers (s[4:5] input, s[6:7] output; v0 four times the lane,
    s2 the wave) and the end."""

    name: str
    body: str
    vgprs: int = 128
    lds_bytes: int = 0
    waves: int = 1
    saturating: bool = True  # MODE.FP16_OVFL, as our assembly kernels have it


def load(first: int, words: int, at: int = 0) -> str:
    """Input words at.. into v[first].., and the wait for them."""
    return "\n".join([*(_access("load", first + i, at + i) for i in range(words)), "  s_waitcnt vmcnt(0)"])


def store(first: int, words: int, at: int = 0) -> str:
    """v[first].. into output words at.."""
    return "\n".join(_access("store", first + i, at + i) for i in range(words))


def _access(kind: str, register: int, word: int) -> str:
    if not 0 <= word < MAX_WORDS:
        raise ValueError(f"word {word}: a probe has {MAX_WORDS} words per lane")
    address, offset = f"v{word // WORDS_PER_ADDRESS}", word % WORDS_PER_ADDRESS * ROW
    operands = f"v{register}, {address}, s[4:5]" if kind == "load" else f"{address}, v{register}, s[6:7]"
    return f"  global_{kind}_dword {operands} offset:{offset}"


def module(kernels: tuple[ProbeKernel, ...]) -> str:
    """The text of one code object with all kernels."""
    return "\n".join(
        [
            '.amdgcn_target "amdgcn-amd-amdhsa--gfx950"',
            ".amdhsa_code_object_version 5",
            *(_code(kernel) for kernel in kernels),
            ".amdgpu_metadata",
            "---",
            "amdhsa.version: [1, 2]",
            "amdhsa.target: amdgcn-amd-amdhsa--gfx950",
            "amdhsa.kernels:",
            *(_metadata(kernel) for kernel in kernels),
            "...",
            ".end_amdgpu_metadata",
            "",
        ]
    )


def _code(kernel: ProbeKernel) -> str:
    name = kernel.name
    filler = "\n".join(["  s_nop 0"] * 64)  # the instruction prefetcher reads ahead
    return f"""\
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{PROLOGUE}
{kernel.body}
  s_endpgm
{filler}
.Lend_{name}:
.size {name}, .Lend_{name}-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {kernel.lds_bytes}
  .amdhsa_kernarg_size 16
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {kernel.vgprs}
  .amdhsa_accum_offset {kernel.vgprs}
  .amdhsa_next_free_sgpr 32
  .amdhsa_float_denorm_mode_32 3
  .amdhsa_dx10_clamp 0
  .amdhsa_ieee_mode 0
  .amdhsa_fp16_overflow {int(kernel.saturating)}
.end_amdhsa_kernel"""


def _metadata(kernel: ProbeKernel) -> str:
    return f"""\
  - .name: {kernel.name}
    .symbol: {kernel.name}.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {kernel.lds_bytes}
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: {kernel.vgprs}
    .agpr_count: 0
    .max_flat_workgroup_size: {64 * kernel.waves}
    .args:
      - {{.name: input, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.name: output, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}}"""
