// Text attributes with a fixed set of values.
#pragma once

#include "../error.hpp"
#include "api.hpp"

namespace zyfa::ops {

template <typename Value>
struct Choice {
  const char* text;
  Value value;
};

constexpr Choice<Alignment> kAlignments[] = {{"bottom_right", Alignment::bottom_right},
                                             {"top_left", Alignment::top_left}};
constexpr Choice<Layout> kLayouts[] = {{"BSHD", Layout::bshd}, {"BHSD", Layout::bhsd}};
constexpr Choice<Precision> kPrecisions[] = {
    {"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp8", Precision::fp8}};
constexpr Choice<Fp8Edges> kEdges[] = {
    {"hilo", Fp8Edges::hilo}, {"bf16", Fp8Edges::bf16}, {"none", Fp8Edges::none}};
constexpr Choice<Rotation> kRotations[] = {{"none", Rotation::none}, {"hadamard", Rotation::hadamard}};

// The attribute's value; empty when absent. Throws Error when it is not one of `choices`.
template <typename Value, size_t N>
std::optional<Value> choice(const NodeAttributes& node, const char* attribute,
                            const Choice<Value> (&choices)[N]) {
  const std::optional<std::string> text = node.text(attribute);
  if (!text) return std::nullopt;
  std::string known;
  for (const Choice<Value>& c : choices) {
    if (*text == c.text) return c.value;
    known += std::string(known.empty() ? "" : " or ") + "\"" + c.text + "\"";
  }
  fail(attribute, ": expected ", known, ", got \"", *text, "\"");
}

}  // namespace zyfa::ops
