// Which kernels run an attention problem on a gfx950, and how they are launched: kernels/select in C++, to
// the byte. Knows neither ONNX Runtime nor HIP.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernel_table.hpp"

namespace zyfa::hip {

// One run of visible keys per batch entry is a range; it is given as key_range besides the mask. Only the
// device can look at an unread one.
enum class KeyMask { none, range, holes, unread };

// What AttentionProblem does not say.
struct GpuRequest {
  std::string architecture;                            // gcnArchName, features behind a colon included
  ByteRounding byte_rounding = ByteRounding::unknown;  // taken for nearest
  KeyMask key_mask = KeyMask::none;
  bool bias = false, sinks = false, lse = false, present_key = false, present_value = false;
};

// A place in a tensor, in bytes.
struct At {
  Buffer buffer;
  int64_t offset = 0;
};

using ByteStrides = std::array<int64_t, 3>;  // from batch to batch, head to head, row to row

struct Pointer {
  size_t offset;  // in the arguments
  At at;
};

// The first argument_bytes of `arguments` are the packed block, with 0 for pointers.
struct Launch {
  const KernelRow* kernel;
  std::array<int64_t, 3> grid;
  std::array<unsigned char, 272> arguments;
  std::vector<Pointer> pointers;  // by offset; what is absent stays null
};

// Launches in order, on one stream. The workspace is aligned to kSliceBytes and needs no content.
struct Choice {
  std::vector<Launch> launches;
  int64_t workspace_bytes = 0;
  std::string why;
};

// Throws Error that names the attribute, what was expected, what was found and what to do.
Choice select(const AttentionProblem& problem, const GpuRequest& request);

// ZyfaQuantizeFp8 of x, contiguous in its layout, to y and scale.
struct QuantizeProblem {
  int64_t batch, heads, rows, dim;
  DType dtype;
  Layout layout = Layout::bshd;
  kernels::QuantizeGranularity granularity = kernels::kPerBatchHead;
  Rotation rotation = Rotation::none;
};
Choice select_quantize(const QuantizeProblem& problem, const std::string& architecture);

// ZyfaHadamard of x, `count` elements in rows of `dim`, to y.
Choice select_hadamard(int64_t count, int64_t dim, DType dtype, const std::string& architecture);

}  // namespace zyfa::hip
