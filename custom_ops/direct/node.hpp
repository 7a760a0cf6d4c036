// A node of ai.zyfa with fixed shapes that runs without ONNX Runtime.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../hip/select.hpp"
#include "../ops/attention_node.hpp"
#include "../ops/tensor_nodes.hpp"

namespace zyfa::direct {

struct Request {
  std::string op, name;
  ops::AttributeList attributes;
  std::vector<std::optional<TensorInfo>> inputs, outputs;
  std::optional<int> device;  // a GPU's number; empty: the CPU
  hip::ByteRounding byte_rounding = hip::ByteRounding::unknown;
};

class Node {
 public:
  virtual ~Node() = default;
  // Contiguous tensors in the order of the request; `stream` is a GPU's.
  virtual void run(const void* const* inputs, void* const* outputs, void* stream) const = 0;
};

// Throws Error for what the operator, or the GPU's kernels, refuse.
std::unique_ptr<Node> make_cpu_node(const Request& request);
std::unique_ptr<Node> make_gpu_node(const Request& request);

// What both check in the same way.
AttentionProblem attention_problem(const Request& request);
ops::QuantizeNode quantize_node(const Request& request);
const TensorInfo& hadamard_input(const Request& request);

// On threads of the call's own.
cpu::ParallelFor threads();

}  // namespace zyfa::direct
