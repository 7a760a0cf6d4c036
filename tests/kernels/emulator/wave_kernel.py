"""Wraps a few instructions in a kernel that loads its inputs, runs them and stores the results."""

from __future__ import annotations

from typing import Any

import numpy as np
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.emulator import Result, launch

HEADER = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.amdhsa_code_object_version 5
.text
.globl kernel
.p2align 8
.type kernel,@function
kernel:
"""

FOOTER = """
  s_endpgm
.Lend:
.size kernel, .Lend-kernel
.rodata
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {private}
  .amdhsa_kernarg_size {kernarg}
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_system_sgpr_workgroup_id_z 1
  .amdhsa_system_vgpr_workitem_id 2
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_accum_offset {accum}
  .amdhsa_next_free_sgpr 96
  .amdhsa_float_denorm_mode_32 {denorm32}
  .amdhsa_float_denorm_mode_16_64 {denorm16}
  .amdhsa_fp16_overflow {overflow}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .kernarg_segment_size: {kernarg}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {private}
    .wavefront_size: 64
    .sgpr_count: 96
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: 1024
    .args:
{args}
...
.end_amdgpu_metadata
"""


def kernel_text(
    body: str,
    *,
    pointers: int = 2,
    lds: int = 0,
    private: int = 0,
    vgprs: int = 512,
    accum: int = 256,
    denorm32: int = 3,
    denorm16: int = 3,
    overflow: int = 0,
) -> str:
    """A complete assembly text: `pointers` 8-byte arguments, kernarg pointer in s[0:1], workgroup ids in s2, s3, s4."""
    args = "\n".join(
        f"      - {{.offset: {8 * i}, .size: 8, .value_kind: global_buffer, .address_space: global}}"
        for i in range(pointers)
    )
    footer = FOOTER.format(
        lds=lds, private=private, kernarg=8 * pointers, vgprs=vgprs, accum=accum, denorm32=denorm32, denorm16=denorm16,
        overflow=overflow, args=args or "      []",
    )  # fmt: skip
    return HEADER + body + footer


def run_kernel(
    body: str,
    args: list[Any],
    *,
    grid: tuple[int, ...] = (1,),
    block: tuple[int, ...] = (64,),
    report_only: bool = False,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> Result:
    """Assembles and launches a body over arrays (one pointer argument each, changed in place)."""
    code = assemble(kernel_text(body, pointers=len(args), **settings))
    return launch(code, "kernel", grid, block, args, report_only=report_only, **(options or {}))


def run_lanes(
    body: str,
    inputs: list[np.ndarray],
    outputs: int = 1,
    *,
    report_only: bool = False,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> np.ndarray:
    """Runs `body` on one wave: input i (64 or n x 64 dwords) in v10, v11, … (n registers each), results from v40, v41, ….

    v1 is the lane's byte offset (4 * lane). Returns (outputs, 64) uint32. 5 wait states stand before and 24 after the body.
    """
    flat = [np.ascontiguousarray(a).view(np.uint32).reshape(-1, 64) for a in inputs]
    rows = np.concatenate(flat) if flat else np.zeros((1, 64), np.uint32)
    out = np.zeros((outputs, 64), np.uint32)
    loads = "\n".join(
        f"  s_add_u32 s8, s4, {256 * i}\n  s_addc_u32 s9, s5, 0\n  global_load_dword v{10 + i}, v1, s[8:9]"
        for i in range(len(rows))
    )
    stores = "\n".join(
        f"  s_add_u32 s8, s6, {256 * i}\n  s_addc_u32 s9, s7, 0\n  global_store_dword v1, v{40 + i}, s[8:9]"
        for i in range(outputs)
    )
    text = f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32_e32 v1, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v1
  s_waitcnt lgkmcnt(0)
{loads}
  s_waitcnt vmcnt(0)
  s_nop 4
{body}
  s_nop 15
  s_nop 7
  s_mov_b64 exec, -1
{stores}
"""
    run_kernel(text, [np.ascontiguousarray(rows), out], report_only=report_only, options=options, **settings)
    return out
