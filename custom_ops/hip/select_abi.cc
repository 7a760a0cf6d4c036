#include "select_abi.h"

#include <cstdio>

#include "../error.hpp"
#include "select.hpp"
#include "select_problem.hpp"

namespace {

using namespace zyfa;
using namespace zyfa::hip;

std::string numbers(const std::array<int64_t, 3>& of) { return shape_text({of.begin(), of.end()}); }

void print(std::ostream& out, const At& at) {
  out << kBufferNames[static_cast<size_t>(at.buffer)] << "+" << at.offset;
}

void print(std::ostream& out, const Launch& launch) {
  const KernelRow& row = *launch.kernel;
  out << "launch " << row.code_object << " " << row.kernel << " grid " << numbers(launch.grid) << " block "
      << row.work_items << " lds " << row.lds_bytes << " pointers";
  for (const Pointer& pointer : launch.pointers) {
    out << " " << pointer.offset << "=";
    print(out, pointer.at);
  }
  out << " arguments ";
  for (int64_t i = 0; i < row.argument_bytes; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", launch.arguments[static_cast<size_t>(i)]);
    out << hex;
  }
  out << "\n";
}

int64_t give(const std::string& line, char* text, int64_t size) {
  std::snprintf(text, static_cast<size_t>(size), "%s", line.c_str());
  return static_cast<int64_t>(line.size());
}

template <typename Select>
int64_t give_choice(char* text, int64_t size, const Select& select) {
  try {
    const Choice choice = select();
    std::ostringstream out;
    out << "why " << choice.why << "\nworkspace " << choice.workspace_bytes << "\n";
    for (const Launch& launch : choice.launches) print(out, launch);
    return give(out.str(), text, size);
  } catch (const Error& refusal) {
    return -give(refusal.what(), text, size);
  }
}

}  // namespace

#define ZYFA_EXPORT extern "C" __attribute__((visibility("default"))) int64_t

ZYFA_EXPORT zyfa_select(const zyfa_select_problem* problem, char* text, int64_t size) {
  return give_choice(text, size, [&] { return select(problem_of(*problem), request_of(*problem)); });
}

ZYFA_EXPORT zyfa_select_quantize(int64_t batch, int64_t heads, int64_t rows, int64_t dim, int32_t dtype,
                                 int32_t bhsd, int32_t granularity, int32_t rotation,
                                 const char* architecture, char* text, int64_t size) {
  const QuantizeProblem problem{batch,
                                heads,
                                rows,
                                dim,
                                kInputTypes[dtype],
                                bhsd != 0 ? Layout::bhsd : Layout::bshd,
                                static_cast<kernels::QuantizeGranularity>(granularity),
                                static_cast<Rotation>(rotation)};
  return give_choice(text, size, [&] { return select_quantize(problem, architecture); });
}

ZYFA_EXPORT zyfa_select_hadamard(int64_t count, int64_t dim, int32_t dtype, const char* architecture,
                                 char* text, int64_t size) {
  return give_choice(text, size,
                     [&] { return select_hadamard(count, dim, kInputTypes[dtype], architecture); });
}
