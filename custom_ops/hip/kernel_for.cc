#include "kernel_for.hpp"

#include <algorithm>

namespace zyfa::hip {
namespace {

const char* name(Precision precision) {
  return precision == Precision::fp32 ? "fp32" : precision == Precision::bf16 ? "bf16" : "fp8";
}

const char* name(Family family) {
  return family == Family::fp8_prefill ? "fp8_prefill" : family == Family::decode ? "decode" : "bf16_prefill";
}

const char* name(ByteRounding rounding) {
  return rounding == ByteRounding::nearest    ? "nearest"
         : rounding == ByteRounding::truncate ? "truncate"
                                              : "other";
}

// Softcap and bias are for the BF16 kernels on inputs that are not quantised.
bool takes_scores_apart(const AttentionProblem& p) {
  return p.precision == Precision::bf16 && p.dtype != DType::float8e4m3fn;
}

Family bf16_family(const AttentionProblem& p, const GpuRequest& r) {
  Bf16PrefillArguments a{};
  a.softcap = p.softcap;
  a.bias = r.bias ? &a : nullptr;
  a.scale = p.scale;
  return needs_general(a) ? Family::bf16_prefill_general : Family::bf16_prefill;
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::vector<const KernelRow*> of_dims(const AttentionProblem& p, Family family, bool padded = false) {
  int64_t qk_dim = p.qk_dim, v_dim = p.v_dim;
  std::vector<const KernelRow*> found;
  std::vector<std::string> there;
  for (const auto& [from_qk, from_v, to_qk, to_v] : kPaddedDims) {
    if (!padded) break;
    there.push_back(dims(from_qk, from_v));
    if (from_qk == p.qk_dim && from_v == p.v_dim) qk_dim = to_qk, v_dim = to_v;
  }
  for (const KernelRow& row : kKernels) {
    if (row.family != family) continue;
    if (row.qk_dim == qk_dim && row.v_dim == v_dim) found.push_back(&row);
    const std::string text = dims(row.qk_dim, row.v_dim);
    if (std::find(there.begin(), there.end(), text) == there.end()) there.push_back(text);
  }
  if (found.empty())
    refuse(kRefuseHeadDims, dims(p.qk_dim, p.v_dim), join(there, ", ") + " (" + name(family) + ")");
  return found;
}

const KernelRow& fp8_prefill(const AttentionProblem& p, const GpuRequest& r) {
  const std::vector<const KernelRow*> rows = of_dims(p, Family::fp8_prefill, true);
  if (r.key_mask == KeyMask::holes) refuse(kRefuseMaskHoles, "a mask with holes");
  const ByteRounding wanted =
      r.byte_rounding == ByteRounding::unknown ? ByteRounding::nearest : r.byte_rounding;
  std::vector<std::string> made;
  for (const KernelRow* row : rows) {
    if (row->edges != p.fp8_edges || row->writes != p.out_dtype) continue;
    if (row->rounding == wanted) return *row;
    made.push_back(name(row->rounding));
  }
  refuse(kRefuseByteRounding, name(wanted), join(made, " or "));
}

const KernelRow& decode(const AttentionProblem& p) {
  const DType cache = takes_scores_apart(p) ? DType::bfloat16 : DType::float8e4m3fn;
  const int64_t rows = p.group_size() * p.q_len <= 16 ? 16 : 32;
  for (const KernelRow* row : of_dims(p, Family::decode))
    if (row->reads == cache && row->rows == rows) return *row;
  fail("decode: no row in the kernel table");
}

}  // namespace

std::string dims(int64_t qk, int64_t v) { return std::to_string(qk) + "/" + std::to_string(v); }

std::string filled(std::string text, const std::string& mark, const std::string& value) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

bool is_decode(const AttentionProblem& p, const GpuRequest& r) {
  return p.q_len <= kDecodeQueries && p.softcap == 0 && !r.bias;
}

void check_architecture(const std::string& architecture) {
  if (architecture.substr(0, architecture.find(':')) != kArchitecture)
    refuse(kRefuseArchitecture, architecture);
}

void check_attributes(const AttentionProblem& p, const GpuRequest& r) {
  check_architecture(r.architecture);
  if (p.precision == Precision::fp32) refuse(kRefusePrecision, name(p.precision));
  if (p.precision == Precision::fp8 && p.fp8_edges == Fp8Edges::bf16) refuse(kRefuseFp8Edges, "bf16");
  if (!takes_scores_apart(p)) {
    if (p.softcap != 0) refuse(kRefuseSoftcap, p.softcap);
    if (r.bias) refuse(kRefuseBias, "a bias");
  }
  if (p.precision == Precision::bf16 && p.dtype == DType::float8e4m3fn && !is_decode(p, r))
    refuse(kRefuseQuantisedPrefill, name(p.precision));
}

const KernelRow& kernel_for(const AttentionProblem& p, const GpuRequest& r) {
  if (is_decode(p, r)) return decode(p);
  if (p.precision == Precision::fp8) return fp8_prefill(p, r);
  return *of_dims(p, bf16_family(p, r)).front();
}

void check_sizes(const AttentionProblem& p, bool quantised_here) {
  for (const auto& [what, size] : {std::pair{"query rows", p.q_len}, std::pair{"keys", p.kv_len()}}) {
    if (size > kMostLength) refuse(kRefuseLength, size, what);
    if (quantised_here && size > kMostQuantized) refuse(kRefuseQuantizedRows, size, what);
  }
}

void check_strides(const std::string& name, const ByteStrides& strides, int64_t most_row) {
  for (const int64_t step : strides)
    if (step % kAlignment != 0) refuse(kRefuseAlignment, step, name);
  if (strides[2] > most_row) refuse(kRefuseRowStride, strides[2], name + " row", most_row);
}

void check_grid(const KernelRow& row, const std::array<int64_t, 3>& grid) {
  for (size_t axis = 0; axis < 3; ++axis)
    if (grid[axis] > kMostGrid[axis]) refuse(kRefuseGrid, shape_text({grid.begin(), grid.end()}), row.kernel);
}

}  // namespace zyfa::hip
