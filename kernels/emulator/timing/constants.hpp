// The numbers of the timing model (constants.def), each open to a change by name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace zyfa::emulator::timing {

struct ConstantInfo {
  const char *name, *unit, *source, *confidence, *text;
  double value;
};

struct Constants {
#define ZYFA_CONSTANT(name, value, unit, source, confidence, text) double name = value;
#include "constants.def"
#undef ZYFA_CONSTANT

  // Throws LaunchError: an unknown name (lists those there are), a negative or absurd value.
  void set(const std::map<std::string, double>& values);
};

const std::vector<ConstantInfo>& constant_table();

}  // namespace zyfa::emulator::timing
