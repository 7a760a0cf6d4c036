#include "gpu_choices.hpp"

namespace zyfa::ops {

hip::Choice quantize_choice(const QuantizeNode& node, const TensorInfo& x, const std::string& architecture) {
  const QuantizeNode::Sizes z = node.sizes(x.shape);
  const auto of = node.granularity == Granularity::tensor ? kernels::kPerTensor
                  : node.granularity == Granularity::head ? kernels::kPerHead
                                                          : kernels::kPerBatchHead;
  return hip::select_quantize({z.batch, z.heads, z.rows, z.dim, x.dtype, node.layout, of, node.rotation},
                              architecture);
}

hip::Choice hadamard_choice(const TensorInfo& x, const std::string& architecture) {
  return hip::select_hadamard(element_count(x.shape), x.shape.back(), x.dtype, architecture);
}

}  // namespace zyfa::ops
