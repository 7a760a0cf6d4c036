#include "timing/constants.hpp"

#include <cmath>

#include "errors.hpp"

namespace zyfa::emulator::timing {
namespace {

double* find(Constants& constants, const std::string& wanted) {
#define ZYFA_CONSTANT(name, value, unit, source, confidence, text) \
  if (wanted == #name) return &constants.name;
#include "timing/constants.def"
#undef ZYFA_CONSTANT
  return nullptr;
}

// Zero is a meaning for these; for all others it would be a division by zero or an endless rate.
bool may_be_zero(const std::string& name) {
  for (const char* ending : {"_rate", "_latency", "_placement", "head_cycles", "barrier_cycles"})
    if (name.size() >= std::string(ending).size() &&
        name.compare(name.size() - std::string(ending).size(), std::string::npos, ending) == 0)
      return true;
  return name.rfind("coexec_", 0) == 0;
}

// Numbers of things have no unit.
bool counts(const std::string& name) {
  for (const ConstantInfo& info : constant_table())
    if (name == info.name) return *info.unit == '\0';
  return false;
}

}  // namespace

const std::vector<ConstantInfo>& constant_table() {
  static const std::vector<ConstantInfo> table = {
#define ZYFA_CONSTANT(name, value, unit, source, confidence, text) \
  {#name, unit, source, #confidence, text, value},
#include "timing/constants.def"
#undef ZYFA_CONSTANT
  };
  return table;
}

void Constants::set(const std::map<std::string, double>& values) {
  for (const auto& [name, value] : values) {
    double* place = find(*this, name);
    if (place == nullptr) {
      std::string names;
      for (const ConstantInfo& info : constant_table())
        names += std::string(names.empty() ? "" : ", ") + info.name;
      throw LaunchError(
          format("timing: no constant is called '%s'; there are %s", name.c_str(), names.c_str()));
    }
    const double most = counts(name) ? 4096 : 1e9;
    if (!std::isfinite(value) || value < 0 || value > most || (value == 0 && !may_be_zero(name)))
      throw LaunchError(format("timing: constant '%s' must be %s and at most %g, got %g", name.c_str(),
                               may_be_zero(name) ? "0 or more" : "more than 0", most, value));
    if (name.size() > 5 && name.compare(name.size() - 5, 5, "_rate") == 0 && value > 1)
      throw LaunchError(format("timing: constant '%s' is a fraction, got %g", name.c_str(), value));
    *place = value;
  }
}

}  // namespace zyfa::emulator::timing
