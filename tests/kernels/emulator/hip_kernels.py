"""Small kernels for the tests of the device: what they do is in their text."""

from __future__ import annotations

import functools

from kernels.emulator.wave_kernel import kernel_text
from zyfa_ort.kernels.asm.assemble import assemble

# v1: byte offset of the work-item in the grid of blocks of 64. Arguments: pointers in s[8:9], s[10:11], s[12:13].
PROLOGUE = """
  s_load_dwordx4 s[8:11], s[0:1], 0x0
  s_load_dwordx2 s[12:13], s[0:1], 0x10
  v_and_b32_e32 v1, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v1
  s_lshl_b32 s5, s2, 8
  v_add_u32_e32 v1, s5, v1
  s_waitcnt lgkmcnt(0)
"""
VECTOR_ADD = (
    PROLOGUE
    + """
  global_load_dword v2, v1, s[8:9]
  global_load_dword v3, v1, s[10:11]
  s_waitcnt vmcnt(0)
  v_add_f32_e32 v2, v2, v3
  global_store_dword v1, v2, s[12:13]
"""
)
# The wait for the loads is missing.
TOO_EARLY = VECTOR_ADD.replace("  s_waitcnt vmcnt(0)\n", "", 1)
# Long enough for the host to give more work meanwhile.
SLOW = "  s_mov_b32 s8, 0x100000\n.Lagain:\n  s_sub_u32 s8, s8, 1\n  s_cmp_lg_u32 s8, 0\n  s_cbranch_scc1 .Lagain\n"
FOREVER = ".Lagain:\n  s_branch .Lagain\n"


@functools.cache
def code_object(body: str, pointers: int = 3) -> bytes:
    return assemble(kernel_text(body, pointers=pointers))
