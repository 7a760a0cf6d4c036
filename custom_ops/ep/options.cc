#include "options.hpp"

#include <cstdlib>
#include <memory>
#include <utility>

#include "../error.hpp"

namespace zyfa::ep {
namespace {

// ONNX Runtime puts provider options among the session's, with the lower-case name of the provider in front.
constexpr const char kPrefix[] = "ep.zyfaexecutionprovider.";

template <typename Value>
using Words = std::initializer_list<std::pair<const char*, Value>>;

template <typename Value>
Value word(const char* key, const std::string& text, Words<Value> words) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (text == name) return value;
    known += std::string(known.empty() ? "" : ", ") + name;
  }
  fail("provider option ", key, ": expected one of ", known, ", got '", text, "'");
}

void set(Options& options, const std::string& key, const std::string& text) {
  if (key == "device_id") {
    char* end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || number < 0 || number > 1023)
      fail("provider option device_id: expected a device number, got '", text, "'");
    options.device_id = static_cast<int>(number);
  } else if (key == "precision") {
    options.precision = word<std::optional<Precision>>(
        "precision", text, {{"node", std::nullopt}, {"bf16", Precision::bf16}, {"fp8", Precision::fp8}});
  } else if (key == "allow_fallback") {
    options.allow_fallback = word<bool>("allow_fallback", text, {{"0", false}, {"1", true}});
  } else if (key == "byte_rounding") {
    options.byte_rounding = word<hip::ByteRounding>("byte_rounding", text,
                                                    {{"unknown", hip::ByteRounding::unknown},
                                                     {"nearest", hip::ByteRounding::nearest},
                                                     {"truncate", hip::ByteRounding::truncate},
                                                     {"other", hip::ByteRounding::other}});
  } else {
    fail("provider option ", key, ": expected one of device_id, precision, allow_fallback, byte_rounding");
  }
}

}  // namespace

Options read_options(const OrtSessionOptions* session) {
  OrtKeyValuePairs* raw = nullptr;
  ops::check(ops::api->GetSessionOptionsConfigEntries(session, &raw));
  const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> entries(
      raw, ops::api->ReleaseKeyValuePairs);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  ops::api->GetKeyValuePairs(raw, &keys, &values, &count);
  Options options;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = keys[i];
    if (key.rfind(kPrefix, 0) == 0) set(options, key.substr(sizeof(kPrefix) - 1), values[i]);
  }
  return options;
}

}  // namespace zyfa::ep
