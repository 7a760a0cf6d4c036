// What the emulated device has to say beyond a status code: the text behind zyfa_emulated_last_report.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "findings.hpp"

namespace zyfa::emulator::hip {

class Report {
 public:
  // Why work on a stream failed: kept, and written to standard error.
  void fail(const std::string& text);
  // Why a call was refused: kept only.
  void refuse(const std::string& text);
  // Warnings of a launch that went well: kept only.
  void warn(const std::string& text);
  std::string text() const;

 private:
  void keep(const std::string& text);
  mutable std::mutex mutex_;
  std::string text_;
};

Report& report();

// One line per finding, the worst first.
std::string describe(const std::vector<Finding>& findings);

}  // namespace zyfa::emulator::hip
