#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "../cpu/attention.hpp"
#include "../error.hpp"
#include "node.hpp"

namespace zyfa::direct {
namespace {

class Attention : public Node {
 public:
  explicit Attention(const Request& request) : problem_(attention_problem(request)) {
    inputs_ = request.inputs.size();
    outputs_ = request.outputs.size();
    masked_ = inputs_ > ops::kKeyMask && request.inputs[ops::kKeyMask];
    biased_ = inputs_ > ops::kAttnBias && request.inputs[ops::kAttnBias];
  }

  void run(const void* const* inputs, void* const* outputs, void*) const override {
    const auto in = [&](size_t index) { return index < inputs_ ? inputs[index] : nullptr; };
    const auto floats = [&](size_t index) { return static_cast<const float*>(in(index)); };
    const auto out = [&](size_t index) { return index < outputs_ ? outputs[index] : nullptr; };
    cpu::AttentionTensors tensors{};
    tensors.query = in(ops::kQuery);
    tensors.key = in(ops::kKey);
    tensors.value = in(ops::kValue);
    tensors.past_key = in(ops::kPastKey);
    tensors.past_value = in(ops::kPastValue);
    tensors.key_mask = masked_ ? in(ops::kKeyMask) : nullptr;
    tensors.attn_bias = biased_ ? in(ops::kAttnBias) : nullptr;
    tensors.q_scale = floats(ops::kQScale);
    tensors.k_scale = floats(ops::kKScale);
    tensors.v_scale = floats(ops::kVScale);
    tensors.sinks = floats(ops::kSinks);
    tensors.output = out(ops::kOutput);
    tensors.present_key = out(ops::kPresentKey);
    tensors.present_value = out(ops::kPresentValue);
    tensors.lse = static_cast<float*>(out(ops::kLse));
    cpu::attention(problem_, tensors, threads());
  }

 private:
  const AttentionProblem problem_;
  size_t inputs_, outputs_;
  bool masked_, biased_;
};

class Quantize : public Node {
 public:
  explicit Quantize(const Request& request) : node_(quantize_node(request)), x_(*request.inputs[0]) {}

  void run(const void* const* inputs, void* const* outputs, void*) const override {
    ops::quantize(node_, x_, inputs[0], threads(), static_cast<uint8_t*>(outputs[0]),
                  static_cast<float*>(outputs[1]));
  }

 private:
  const ops::QuantizeNode node_;
  const TensorInfo x_;
};

class Hadamard : public Node {
 public:
  explicit Hadamard(const Request& request) : x_(hadamard_input(request)) {}

  void run(const void* const* inputs, void* const* outputs, void*) const override {
    ops::hadamard(x_, inputs[0], threads(), outputs[0]);
  }

 private:
  const TensorInfo x_;
};

}  // namespace

cpu::ParallelFor threads() {
  return [](int64_t count, const std::function<void(int64_t)>& body) {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr first;
    const auto work = [&] {
      try {
        for (int64_t i = next++; i < count; i = next++) body(i);
      } catch (...) {
        next = count;
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
      }
    };
    const int64_t most = std::min<int64_t>(count, std::thread::hardware_concurrency());
    std::vector<std::thread> others;
    try {
      for (int64_t i = 1; i < most; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // no further thread to be had: fewer will do
    }
    work();
    for (std::thread& thread : others) thread.join();
    if (first) std::rethrow_exception(first);
  };
}

std::unique_ptr<Node> make_cpu_node(const Request& request) {
  if (request.op == ops::AttentionNode::kName) return std::make_unique<Attention>(request);
  if (request.op == ops::QuantizeNode::kName) return std::make_unique<Quantize>(request);
  if (request.op == ops::HadamardNode::kName) return std::make_unique<Hadamard>(request);
  fail("operator: expected ", ops::AttentionNode::kName, ", ", ops::QuantizeNode::kName, " or ",
       ops::HadamardNode::kName, ", got ", request.op);
}

}  // namespace zyfa::direct
