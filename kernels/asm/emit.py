"""The assembly text of a finished program: header, code, kernel descriptor, metadata."""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.asm.flow import states_before
from zyfa_ort.kernels.asm.hazards import with_wait_states
from zyfa_ort.kernels.asm.program import Instruction, Item, Label, Program
from zyfa_ort.kernels.asm.waits import with_waits

# The instruction prefetcher reads ahead; shipped kernels end in 256 bytes of filler.
CODE_END = "\n".join(["  s_nop 0"] * 64)


@dataclass(frozen=True)
class KernelArgument:
    name: str
    bytes: int
    pointer: bool = False


@dataclass(frozen=True)
class KernelLimits:
    """What the launch needs: registers, LDS, work-items."""

    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    workgroup: int

    @property
    def accum_offset(self) -> int:
        return max(4, -(-self.vgprs // 4) * 4)

    @property
    def total_vgprs(self) -> int:
        return self.accum_offset + self.agprs if self.agprs else self.vgprs


def finish(program: Program, defined: set[tuple[str, int]]) -> list[Item]:
    """Waits and wait states derived; every register written before it is read (raises ValueError)."""
    _check_defined(program.items, defined)
    return with_wait_states(with_waits(program.items))


def _check_defined(items: list[Item], defined: set[tuple[str, int]]) -> None:
    def step(state: frozenset[tuple[str, int]], item: Item) -> frozenset[tuple[str, int]]:
        return state | item.writes() if isinstance(item, Instruction) else state

    before = states_before(items, frozenset(defined), step, lambda a, b: a & b)
    for item, state in zip(items, before, strict=True):
        if isinstance(item, Instruction) and state is not None:
            missing = {
                u for u in item.reads() - state if "merge" not in item.row.extra or u not in item.writes()
            }
            if missing:
                raise ValueError(
                    f"{item.origin}: '{item.text()}' reads {sorted(missing)[:3]}, not written on every way"
                )


def offsets(arguments: list[KernelArgument]) -> dict[str, int]:
    """Byte offsets of the arguments at their natural alignment."""
    at, found = 0, {}
    for argument in arguments:
        at = -(-at // argument.bytes) * argument.bytes
        found[argument.name] = at
        at += argument.bytes
    return found


def text(program: Program, items: list[Item], limits: KernelLimits, arguments: list[KernelArgument]) -> str:
    name = program.name
    code = "\n".join(
        f"{i.name}:" if isinstance(i, Label) else _line(i) for i in items if not hasattr(i, "tokens")
    )
    placed = offsets(arguments)
    size = -(-max(placed[a.name] + a.bytes for a in arguments) // 8) * 8
    rows = "\n".join(
        f"      - {{.name: {a.name}, .offset: {placed[a.name]}, .size: {a.bytes}, "
        + (".value_kind: global_buffer, .address_space: global}" if a.pointer else ".value_kind: by_value}")
        for a in arguments
    )
    return f"""\
.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.amdhsa_code_object_version 5
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{code}
{CODE_END}
.Lend:
.size {name}, .Lend-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {limits.lds_bytes}
  .amdhsa_kernarg_size {size}
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_system_sgpr_workgroup_id_z 1
  .amdhsa_system_vgpr_workitem_id 0
  .amdhsa_next_free_vgpr {limits.total_vgprs}
  .amdhsa_accum_offset {limits.accum_offset}
  .amdhsa_next_free_sgpr {limits.sgprs}
  .amdhsa_float_denorm_mode_32 3
  .amdhsa_dx10_clamp 0
  .amdhsa_ieee_mode 0
  .amdhsa_fp16_overflow 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: {size}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {limits.lds_bytes}
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: {limits.sgprs}
    .vgpr_count: {limits.total_vgprs}
    .agpr_count: {limits.agprs}
    .max_flat_workgroup_size: {limits.workgroup}
    .args:
{rows}
...
.end_amdgpu_metadata
"""


def _line(item: Item) -> str:
    assert isinstance(item, Instruction)
    note = f"  ; {item.note}" if item.note else ""
    return f"  {item.text()}{note}"
