#include "decode.hpp"
#include "errors.hpp"
#include "timing/report.hpp"

namespace zyfa::emulator::timing {
namespace {

void add_name(std::string& json, const char* what, unsigned process, unsigned track,
              const std::string& name) {
  json += format("{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}},\n", what,
                 process, track, name.c_str());
}

std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c >= ' ' ? c : ' ';
  }
  return made;
}

}  // namespace

std::string trace_json(const Trace& trace, uint64_t entry) {
  constexpr unsigned kWaves = 1, kPipes = 2;
  static const char* const pipes[] = {"matrix", "VALU", "LDS", "memory"};
  std::string json =
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"unit\":\"1 us = 1 cycle\",\"model\":\"MODELLED\"},"
      "\"traceEvents\":[\n";
  add_name(json, "process_name", kWaves, 0, "waves");
  add_name(json, "process_name", kPipes, 0, "pipes");
  for (size_t i = 0; i < trace.wave_names.size(); ++i)
    add_name(json, "thread_name", kWaves, static_cast<unsigned>(i), trace.wave_names[i]);
  for (unsigned i = 0; i < kWaveTracks; ++i)
    add_name(json, "thread_name", kPipes, i, format("%s, SIMD %u", pipes[i / kSimds], i % kSimds));
  for (const TraceEvent& event : trace.events) {
    const bool wave = event.track >= kWaveTracks;
    json += format(
        "{\"ph\":\"X\",\"name\":\"%s\",\"ts\":%llu,\"dur\":%u,\"pid\":%u,\"tid\":%u,\"args\":{\"at\":\"+0x%"
        "llx\"}},\n",
        escaped(disassemble(event.step->instruction)).c_str(), static_cast<unsigned long long>(event.begin),
        event.cycles, wave ? kWaves : kPipes, wave ? event.track - kWaveTracks : event.track,
        static_cast<unsigned long long>(event.step->instruction.address - entry));
  }
  json.resize(json.size() - 2);  // the last comma
  return json + "\n]}\n";
}

}  // namespace zyfa::emulator::timing
