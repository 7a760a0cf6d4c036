// Shapes at session creation, with their symbols: what OrtCustomOp::InferOutputShapeFn reads and writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api.hpp"

namespace zyfa::ops {

// A dimension is a number, a symbol, or unknown (-1 and no symbol).
struct Dim {
  int64_t value = -1;
  std::string symbol;

  bool known() const { return value >= 0 || !symbol.empty(); }
};

// A symbol that no other dimension has.
Dim fresh_dim();

// The length of two parts joined.
Dim operator+(const Dim& first, const Dim& second);

class ShapeContext {
 public:
  explicit ShapeContext(OrtShapeInferContext* context) : context_(context) {}

  struct Tensor {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    std::vector<Dim> dims;  // empty when the rank is not known
  };
  // UNDEFINED type and no dims for an absent optional input.
  Tensor input(size_t index) const;
  std::optional<int64_t> integer(const char* name) const;
  std::optional<std::string> text(const char* name) const;
  // Does nothing for a tensor with an unknown rank or dimension, nor for an optional output that the node
  // does not have.
  void set_output(size_t index, ONNXTensorElementDataType type, const std::vector<Dim>& dims) const;

 private:
  OrtShapeInferContext* context_;
};

}  // namespace zyfa::ops
