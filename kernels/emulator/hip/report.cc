#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "abi.hpp"
#include "errors.hpp"

namespace zyfa::emulator::hip {

void Report::keep(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ = text;
}

void Report::fail(const std::string& text) {
  keep(text);
  std::fprintf(stderr, "emulated gfx950: %s\n", text.c_str());
}

void Report::refuse(const std::string& text) { keep(text); }
void Report::warn(const std::string& text) { keep(text); }

std::string Report::text() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

Report& report() {
  static auto* const made = new Report;
  return *made;
}

std::string describe(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) {
    if (!text.empty()) text += '\n';
    text += format("%s %s: kernel '%s', workgroup (%u,%u,%u), wave %d, +0x%llx '%s': %s",
                   f.severity == Severity::error ? "error" : "warning", rule_name(f.rule), f.kernel.c_str(),
                   f.workgroup[0], f.workgroup[1], f.workgroup[2], f.wave,
                   static_cast<unsigned long long>(f.offset), f.instruction.c_str(), f.message.c_str());
    if (f.missing != 0) text += format(", %d wait states missing", f.missing);
    if (f.times > 1) text += format(" (%llu times)", static_cast<unsigned long long>(f.times));
  }
  return text;
}

}  // namespace zyfa::emulator::hip

// Copies the latest report, zero-terminated and cut to `bytes`; returns the bytes that the whole text needs.
ZYFA_HIP_EXPORT size_t zyfa_emulated_last_report(char* text, size_t bytes) {
  try {
    const std::string whole = zyfa::emulator::hip::report().text();
    if (text != nullptr && bytes > 0) {
      const size_t length = std::min(whole.size(), bytes - 1);
      std::memcpy(text, whole.data(), length);
      text[length] = '\0';
    }
    return whole.size() + 1;
  } catch (...) {
    return 0;
  }
}
