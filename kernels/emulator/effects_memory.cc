// DS, FLAT, GLOBAL, SCRATCH, MUBUF, MTBUF.
#include <cstring>

#include "effects_parts.hpp"

namespace zyfa::emulator {
namespace {

bool contains(const Instruction& instruction, const char* part) {
  return std::strstr(instruction.info->name, part) != nullptr;
}

bool reads_transposed(Op op) { return op >= Op::ds_read_b64_tr_b4 && op <= Op::ds_read_b64_tr_b16; }

bool reads_m0(const Instruction& instruction, const Effects& effects) {
  return effects.lds_dma || contains(instruction, "_addtid_") || instruction.op == Op::ds_append ||
         instruction.op == Op::ds_consume || contains(instruction, "_gws_");
}

void classify_ds(const Instruction& instruction, Effects& effects) {
  const bool exchange = instruction.op == Op::ds_swizzle_b32 || instruction.op == Op::ds_permute_b32 ||
                        instruction.op == Op::ds_bpermute_b32;
  effects.is_load = exchange || contains(instruction, "ds_read");
  effects.is_store = contains(instruction, "ds_write");
  const bool moves = instruction.op != Op::ds_nop && !contains(instruction, "_gws_");
  effects.is_atomic = moves && !effects.is_load && !effects.is_store;
}

void classify(const Instruction& instruction, Effects& effects) {
  if (instruction.info->format == Format::ds) return classify_ds(instruction, effects);
  effects.lds_dma = instruction.lds || contains(instruction, "_load_lds_");
  effects.is_load = contains(instruction, "_load_");
  effects.is_store = contains(instruction, "_store_");
  effects.is_atomic = contains(instruction, "_atomic_");
}

Unit unit_of(Format format) {
  return format == Format::ds ? Unit::lds : format == Format::flat ? Unit::flat : Unit::vmem;
}

bool is_buffer(const Instruction& instruction) {
  return instruction.info->format == Format::mubuf || instruction.info->format == Format::mtbuf;
}

}  // namespace

void memory_effects(const Instruction& instruction, Effects& effects) {
  effects.unit = unit_of(instruction.info->format);
  classify(instruction, effects);
  effects.reads_exec = true;
  effects.all_lanes = reads_transposed(instruction.op);
  read(effects, instruction.addr, Role::address);
  read(effects, instruction.data, Role::store_data);
  read(effects, instruction.data1, Role::store_data);
  read(effects, instruction.base, Role::resource);
  read(effects, instruction.soffset, Role::resource);
  if (reads_m0(instruction, effects)) {
    effects.sgpr_reads.add(kM0, 1, Role::m0);
    effects.traits |= kUsesM0;
  }
  const bool sgpr_offset = is_buffer(instruction) && instruction.soffset.is_sgpr();
  if (effects.unit != Unit::lds && instruction.data.dwords > 2 && !sgpr_offset) effects.traits |= kWideStore;
  if (effects.lds_dma || !instruction.dst) return;
  // A d16 load keeps the other half (with SRAM ECC it may not: the kept half counts as garbage either way).
  if (effects.is_load && contains(instruction, "_d16")) {
    read(effects, instruction.dst, Role::merge);
    write(effects, instruction.dst, Role::partial_result);
  } else {
    write(effects, instruction.dst, Role::result);
  }
}

}  // namespace zyfa::emulator
