#include "select_abi.h"

#include <cstdio>

#include "../error.hpp"
#include "select.hpp"

namespace {

using namespace zyfa;
using namespace zyfa::hip;

constexpr DType kInputTypes[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8e4m3fn};
constexpr DType kMaskTypes[] = {DType::boolean, DType::int32, DType::int64};

Strides strides(const int64_t (&s)[4]) { return {s[0], s[1], s[2], s[3]}; }

AttentionProblem problem_of(const zyfa_select_problem& t) {
  AttentionProblem p{};
  p.batch = t.batch;
  p.q_heads = t.q_heads;
  p.kv_heads = t.kv_heads;
  p.q_len = t.q_len;
  p.new_len = t.new_len;
  p.past_len = t.past_len;
  p.qk_dim = t.qk_dim;
  p.v_dim = t.v_dim;
  p.window_left = t.window_left;
  p.query = strides(t.query);
  p.key = strides(t.key);
  p.value = strides(t.value);
  p.output = strides(t.output);
  p.bias = strides(t.bias);
  p.q_scale = {t.q_scale[0], t.q_scale[1]};
  p.k_scale = {t.k_scale[0], t.k_scale[1]};
  p.v_scale = {t.v_scale[0], t.v_scale[1]};
  p.scale = t.scale;
  p.softcap = t.softcap;
  p.is_causal = t.is_causal != 0;
  p.dtype = kInputTypes[t.dtype];
  p.out_dtype = kInputTypes[t.out_dtype];
  p.mask_dtype = kMaskTypes[t.mask_dtype];
  p.precision = static_cast<Precision>(t.precision);
  p.fp8_edges = static_cast<Fp8Edges>(t.fp8_edges);
  p.rotation = static_cast<Rotation>(t.rotation);
  p.causal_alignment = static_cast<Alignment>(t.causal_alignment);
  return p;
}

GpuRequest request_of(const zyfa_select_problem& t) {
  return {t.architecture,
          static_cast<ByteRounding>(t.byte_rounding),
          static_cast<KeyMask>(t.key_mask),
          t.has_bias != 0,
          t.sinks != 0,
          t.lse != 0,
          t.present_key != 0,
          t.present_value != 0};
}

std::string numbers(const std::array<int64_t, 3>& of) { return shape_text({of.begin(), of.end()}); }

void print(std::ostream& out, const At& at) {
  out << kBufferNames[static_cast<size_t>(at.buffer)] << "+" << at.offset;
}

void print(std::ostream& out, const Launch& launch) {
  const KernelRow& row = *launch.kernel;
  out << "launch " << row.code_object << " " << row.kernel << " grid " << numbers(launch.grid) << " block "
      << row.work_items << " lds " << row.lds_bytes << " pointers";
  for (const Pointer& pointer : launch.pointers) {
    out << " " << pointer.offset << "=";
    print(out, pointer.at);
  }
  out << " arguments ";
  for (int64_t i = 0; i < row.argument_bytes; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", launch.arguments[static_cast<size_t>(i)]);
    out << hex;
  }
  out << "\n";
}

int64_t give(const std::string& line, char* text, int64_t size) {
  std::snprintf(text, static_cast<size_t>(size), "%s", line.c_str());
  return static_cast<int64_t>(line.size());
}

template <typename Select>
int64_t give_choice(char* text, int64_t size, const Select& select) {
  try {
    const Choice choice = select();
    std::ostringstream out;
    out << "why " << choice.why << "\nworkspace " << choice.workspace_bytes << "\n";
    for (const Launch& launch : choice.launches) print(out, launch);
    return give(out.str(), text, size);
  } catch (const Error& refusal) {
    return -give(refusal.what(), text, size);
  }
}

}  // namespace

#define ZYFA_EXPORT extern "C" __attribute__((visibility("default"))) int64_t

ZYFA_EXPORT zyfa_select(const zyfa_select_problem* problem, char* text, int64_t size) {
  return give_choice(text, size, [&] { return select(problem_of(*problem), request_of(*problem)); });
}

ZYFA_EXPORT zyfa_select_quantize(int64_t batch, int64_t heads, int64_t rows, int64_t dim, int32_t dtype,
                                 int32_t bhsd, int32_t granularity, int32_t rotation,
                                 const char* architecture, char* text, int64_t size) {
  const QuantizeProblem problem{batch,
                                heads,
                                rows,
                                dim,
                                kInputTypes[dtype],
                                bhsd != 0 ? Layout::bhsd : Layout::bshd,
                                static_cast<kernels::QuantizeGranularity>(granularity),
                                static_cast<Rotation>(rotation)};
  return give_choice(text, size, [&] { return select_quantize(problem, architecture); });
}

ZYFA_EXPORT zyfa_select_hadamard(int64_t count, int64_t dim, int32_t dtype, const char* architecture,
                                 char* text, int64_t size) {
  return give_choice(text, size,
                     [&] { return select_hadamard(count, dim, kInputTypes[dtype], architecture); });
}
