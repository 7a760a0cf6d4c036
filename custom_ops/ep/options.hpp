// The provider's options, as given by the session.
#pragma once

#include <optional>
#include <string>

#include "../hip/select.hpp"
#include "names.hpp"

namespace zyfa::ep {

struct Options {
  std::optional<int> device_id;
  // Precision of every attention node whose inputs are not quantised, instead of the node's own; empty: the
  // node's.
  std::optional<Precision> precision;
  // Nodes that no GPU kernel computes go to the CPU, with a warning, instead of ending the session with an
  // error.
  bool allow_fallback = false;
  // How the device rounds bytes, as `zyfa-ort doctor --probe` found it.
  hip::ByteRounding byte_rounding = hip::ByteRounding::unknown;
};

// Throws Error for an unknown key or value.
Options read_options(const OrtSessionOptions* session);

}  // namespace zyfa::ep
