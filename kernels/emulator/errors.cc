#include "errors.hpp"

#include <cstdarg>
#include <cstdio>

namespace zyfa::emulator {

namespace {

std::string formatted(const char* pattern, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, pattern, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

}  // namespace

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = formatted(pattern, arguments);
  va_end(arguments);
  return text;
}

void fail(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = formatted(pattern, arguments);
  va_end(arguments);
  throw LaunchError(text);
}

}  // namespace zyfa::emulator
