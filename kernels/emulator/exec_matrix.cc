// v_mfma_* and v_smfmac_*: from a wave's registers to a MatrixJob and back.
#include <cmath>
#include <cstring>

#include "errors.hpp"
#include "execute.hpp"
#include "matrix_multiply.hpp"

namespace zyfa::emulator {
namespace {

constexpr int kInputs = 8;

bool mixed_formats(Op op) {
  return op == Op::v_mfma_f32_32x32x64_f8f6f4 || op == Op::v_mfma_f32_16x16x128_f8f6f4;
}

// ---- operands --------------------------------------------------------------------------------------------

void point_at(const Wave& wave, const Operand& operand, const uint32_t* rows[], int count) {
  for (int r = 0; r < count; ++r) rows[r] = wave.vgpr[operand.reg + r];
}

// C may be an inline constant: the same in every element.
struct Constant {
  uint32_t low[kLanes], high[kLanes];
};

void read_c(const Wave& wave, const Operand& c, bool wide, int count, MatrixJob& job, Constant& constant) {
  if (c.is_vgpr()) return point_at(wave, c, job.c, count);
  for (int l = 0; l < kLanes; ++l) {
    constant.low[l] = static_cast<uint32_t>(c.value);
    constant.high[l] = static_cast<uint32_t>(c.value >> 32);
  }
  for (int r = 0; r < count; ++r) job.c[r] = wide && r % 2 ? constant.high : constant.low;
}

// ---- lanes taken from elsewhere (CBSZ and ABID for A, BLGP for B) ----------------------------------------

struct Moved {
  uint32_t rows[kInputs][kLanes];
};

int source_lane_b(int blgp, int lane) {
  switch (blgp) {
    case 1:
      return lane % 32;
    case 2:
      return lane % 32 + 32;
    case 3:
      return (lane + 16) % 64;
    default:
      return lane % 16 + 16 * (blgp - 4);
  }
}

void broadcast_a(const Instruction& instruction, const uint32_t* rows[], int count, Moved& moved) {
  const int width = kLanes >> instruction.cbsz;
  for (int r = 0; r < count; ++r) {
    for (int l = 0; l < kLanes; ++l) moved.rows[r][l] = rows[r][l % width + width * instruction.abid];
    rows[r] = moved.rows[r];
  }
}

void permute_b(const Instruction& instruction, const uint32_t* rows[], int count, Moved& moved) {
  for (int r = 0; r < count; ++r) {
    for (int l = 0; l < kLanes; ++l) moved.rows[r][l] = rows[r][source_lane_b(instruction.blgp, l)];
    rows[r] = moved.rows[r];
  }
}

// ---- block scales ----------------------------------------------------------------------------------------

// The decoder takes VGPRs only: of anything else the chip reads bits 30:23, a defect that LLVM works around.
void read_scale(const Wave& wave, const Instruction& instruction, int which, double factors[kLanes]) {
  const uint32_t* scales = wave.vgpr[instruction.scale[which].reg];
  const int byte = (instruction.op_sel >> which & 1) | (instruction.op_sel_hi >> which & 1) << 1;
  for (int l = 0; l < kLanes; ++l) factors[l] = decode_scale(static_cast<uint8_t>(scales[l] >> (8 * byte)));
}

// ---- the instructions ------------------------------------------------------------------------------------

int registers(ElementFormat format, int elements) { return (elements * info(format).bits + 31) / 32; }

// The manual says both that inputs keep denormals and that MODE decides: refuse what would tell the two
// apart.
void refuse_flushed_denormals(const Wave& wave, const MatrixJob& job) {
  if (wave.mode.denormal32_in()) return;
  for (const uint32_t* row : {job.a[0], job.b[0]})
    for (int l = 0; l < kLanes; ++l)
      if ((row[l] & 0x7f800000) == 0 && (row[l] & 0x7fffff) != 0)
        throw LaunchError(
            format("denormal 0x%08x in A or B while MODE flushes them: AMD's manual contradicts itself; "
                   "allow denormals (float_denorm_mode_32 3)",
                   row[l]));
}

void execute(Wave& wave, const Instruction& instruction) {
  const MatrixShape& shape = *find_shape(instruction.op);
  const bool mixed = mixed_formats(instruction.op);
  MatrixJob job;
  job.shape = &shape;
  job.a_format = mixed ? static_cast<ElementFormat>(instruction.cbsz) : shape.a;
  job.b_format = mixed ? static_cast<ElementFormat>(instruction.blgp) : shape.b;
  job.accumulation = wave.group->launch->options.accumulation;
  job.saturate = wave.mode.fp16_overflow();

  const int inputs_a = registers(job.a_format, shape.elements_a());
  const int inputs_b = registers(job.b_format, shape.elements_b());
  point_at(wave, instruction.src[0], job.a, inputs_a);
  point_at(wave, instruction.src[1], job.b, inputs_b);
  const bool wide = shape.result == MatrixResult::f64;
  const int outputs = shape.m * shape.m * shape.blocks / kLanes * (wide ? 2 : 1);
  for (int r = 0; r < outputs; ++r) job.d[r] = wave.vgpr[instruction.dst.reg + r];

  Constant constant;
  Moved moved_a, moved_b;
  double scale_a[kLanes], scale_b[kLanes];
  if (shape.sparse) {
    point_at(wave, instruction.dst, job.c, outputs);
    job.index = wave.vgpr[instruction.src[2].reg];
    const int bits = 2 * shape.elements_a();  // of one set of indices
    if (instruction.cbsz % 4 == 0) job.index_shift = static_cast<uint8_t>(instruction.abid * bits % 32);
  } else {
    read_c(wave, instruction.src[2], wide, outputs, job, constant);
    if (wide) {
      job.negate = instruction.blgp;
    } else if (!mixed) {
      if (instruction.cbsz != 0) broadcast_a(instruction, job.a, inputs_a, moved_a);
      if (instruction.blgp != 0) permute_b(instruction, job.b, inputs_b, moved_b);
    } else if (instruction.scale[0] && (instruction.abid & 1)) {
      read_scale(wave, instruction, 0, scale_a);
      read_scale(wave, instruction, 1, scale_b);
      job.a_scale = scale_a;
      job.b_scale = scale_b;
    }
  }
  if (shape.a == ElementFormat::f32) refuse_flushed_denormals(wave, job);
  multiply(job);
}

// Modifiers without a meaning end the launch when the instruction is first reached.
void check_modifiers(const Instruction& instruction, const MatrixShape& shape) {
  const unsigned cbsz = instruction.cbsz, abid = instruction.abid, blgp = instruction.blgp;
  const auto refuse = [&](const char* why) {
    throw LaunchError(
        format("%s cbsz:%u abid:%u blgp:%u: %s", instruction.info->name, cbsz, abid, blgp, why));
  };
  if (mixed_formats(instruction.op)) {
    if (cbsz > 4 || blgp > 4) refuse("formats are 0 to 4 (FP8, BF8, FP6, BF6, FP4)");
    return;
  }
  if (shape.sparse) {
    if (blgp != 0) refuse("sparse instructions have no BLGP");
    return;
  }
  if (shape.result == MatrixResult::f64) return;  // BLGP negates, the others are ignored
  if (cbsz == 0 && abid != 0) refuse("ABID means nothing without CBSZ");
  if (cbsz != 0 && (1 << cbsz) != shape.blocks)
    refuse(
        "only a broadcast to all blocks is documented without contradiction; CBSZ is the logarithm of their "
        "number");
  if (cbsz != 0 && abid >= shape.blocks) refuse("ABID names no block");
}

}  // namespace

Handler matrix_handler(const Instruction& instruction) {
  const MatrixShape* shape = find_shape(instruction.op);
  if (shape == nullptr) return nullptr;
  check_modifiers(instruction, *shape);
  return execute;
}

}  // namespace zyfa::emulator
