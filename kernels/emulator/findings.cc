#include "findings.hpp"

#include <algorithm>

namespace zyfa::emulator {
namespace {

struct RuleRow {
  const char* name;
  Severity severity;
  const char* text;
};

constexpr RuleRow kRules[] = {
#define ZYFA_RULE(name, severity, text) {#name, Severity::severity, text},
#include "rules.def"
#undef ZYFA_RULE
};

}  // namespace

const char* rule_name(Rule rule) { return kRules[static_cast<int>(rule)].name; }
const char* rule_text(Rule rule) { return kRules[static_cast<int>(rule)].text; }
Severity rule_severity(Rule rule) { return kRules[static_cast<int>(rule)].severity; }

bool Findings::count(Rule rule, Severity severity, uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ++entries_[{address, rule, severity}].first == 1;
}

void Findings::add(Finding finding, uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[{address, finding.rule, finding.severity}].second = std::move(finding);
}

std::vector<Finding> Findings::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Finding> found;
  for (const auto& [key, entry] : entries_) {
    found.push_back(entry.second);
    found.back().times = entry.first;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return found;
}

}  // namespace zyfa::emulator
