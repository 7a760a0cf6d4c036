#include "faults.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace zyfa::emulator::hip {
namespace {

struct FaultRow {
  const char* name;
  hipError_t code;
};

constexpr FaultRow kRows[] = {
#define ZYFA_FAULT(name, code, text) {#name, code},
#include "faults.def"
#undef ZYFA_FAULT
};

// 0 for what is no number of a call.
uint64_t call_number(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && text.size() <= 18 ? std::stoull(text) : 0;
}

}  // namespace

Faults::Faults(const char* specification) {
  std::istringstream parts(specification != nullptr ? specification : "");
  for (std::string one; std::getline(parts, one, ',');)
    if (!plant(one) && mistake_.empty()) {
      mistake_ = "ZYFA_EMULATED_FAULT: '" + one +
                 "' is no fault; expected NAME, NAME:N, NAME:N-M or NAME:N+ with a name of:";
      for (const FaultRow& row : kRows) mistake_ += std::string(" ") + row.name;
    }
}

bool Faults::plant(const std::string& one) {
  const size_t colon = one.find(':');
  const std::string name = one.substr(0, colon);
  std::string number = colon == std::string::npos ? "1" : one.substr(colon + 1);
  bool onwards = name == "lost";
  if (!number.empty() && number.back() == '+') onwards = true, number.pop_back();
  const size_t dash = number.find('-');
  const uint64_t first = call_number(number.substr(0, dash));
  const uint64_t last = onwards                     ? UINT64_MAX
                        : dash == std::string::npos ? first
                                                    : call_number(number.substr(dash + 1));
  if (first == 0 || last < first) return false;
  for (int i = 0; i < static_cast<int>(FaultPoint::count); ++i)
    if (name == kRows[i].name) {
      entries_[i].first = first;
      entries_[i].last = last;
      return true;
    }
  return false;
}

hipError_t Faults::reach(FaultPoint point) {
  Entry& entry = entries_[static_cast<int>(point)];
  if (entry.first == 0) return hipSuccess;
  const uint64_t call = ++entry.calls;
  return call >= entry.first && call <= entry.last ? kRows[static_cast<int>(point)].code : hipSuccess;
}

Faults& faults() {
  // Never destroyed: streams may still run while the process ends.
  static auto* const made = [] {
    auto* const read = new Faults(std::getenv("ZYFA_EMULATED_FAULT"));
    if (!read->mistake().empty()) std::fprintf(stderr, "emulated gfx950: %s\n", read->mistake().c_str());
    return read;
  }();
  return *made;
}

}  // namespace zyfa::emulator::hip
