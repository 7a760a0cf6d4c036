// What the emulator found wrong in a launch: rule, place, and how much is missing.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace zyfa::emulator {

enum class Severity : uint8_t { warning, error };

enum class Rule : uint8_t {
#define ZYFA_RULE(name, severity, text) name,
#include "rules.def"
#undef ZYFA_RULE
  count
};

const char* rule_name(Rule rule);
const char* rule_text(Rule rule);
Severity rule_severity(Rule rule);

struct Finding {
  Rule rule;
  Severity severity;
  std::string kernel;
  uint32_t workgroup[3];
  int wave;
  uint64_t offset;          // of the instruction in the code object's text, bytes from the kernel's entry
  std::string instruction;  // text
  std::string message;      // one sentence: registers or addresses, the instruction it clashes with
  int missing;              // wait states; 0 where the rule does not count them
  uint64_t times;           // how often at this place (all waves and workgroups)
};

// Collects; one entry per rule, severity and instruction address, the first occurrence with all its details.
// Thread-safe.
class Findings {
 public:
  // True the first time: only then the caller needs to make the texts.
  bool count(Rule rule, Severity severity, uint64_t address);
  void add(Finding finding, uint64_t address);
  std::vector<Finding> all() const;  // errors first, then by address

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<uint64_t, Rule, Severity>, std::pair<uint64_t, Finding>> entries_;
};

}  // namespace zyfa::emulator
