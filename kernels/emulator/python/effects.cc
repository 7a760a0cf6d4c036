// The effects of one instruction as a dict, for tests.
#include "effects.hpp"

#include <nanobind/nanobind.h>

#include "decode.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace zyfa::emulator;

namespace {

constexpr const char* kUnits[] = {"salu", "valu", "trans", "matrix", "smem",
                                  "vmem", "lds",  "flat",  "branch", "control"};
constexpr const char* kRoles[] = {"source",       "dpp_source",   "matrix_a", "matrix_b", "matrix_c",
                                  "matrix_scale", "matrix_index", "address",  "data",     "resource",
                                  "mask",         "lane_select",  "exec",     "m0",       "merge",
                                  "unselected",   "passed_on",    "result",   "partial"};

template <int N>
nb::list to_list(const Uses<N>& uses) {
  nb::list made;
  for (const Use& use : uses)
    made.append(nb::make_tuple(use.first, use.count, kRoles[static_cast<int>(use.role)]));
  return made;
}

nb::dict effects_dict(const nb::bytes& code) {
  const Instruction one = decode(reinterpret_cast<const uint8_t*>(code.c_str()), code.size(), 0);
  const Effects effects = effects_of(one);
  nb::dict made;
  made["bytes"] = one.bytes;
  made["name"] = one.info->name;
  made["unit"] = kUnits[static_cast<int>(effects.unit)];
  made["passes"] = effects.passes;
  made["all_lanes"] = effects.all_lanes;
  made["reads_scc"] = effects.reads_scc;
  made["writes_scc"] = effects.writes_scc;
  made["reads_exec"] = effects.reads_exec;
  made["writes_exec"] = effects.writes_exec;
  made["is_load"] = effects.is_load;
  made["is_store"] = effects.is_store;
  made["is_atomic"] = effects.is_atomic;
  made["lds_dma"] = effects.lds_dma;
  made["vgpr_reads"] = to_list(effects.vgpr_reads);
  made["vgpr_writes"] = to_list(effects.vgpr_writes);
  made["sgpr_reads"] = to_list(effects.sgpr_reads);
  made["sgpr_writes"] = to_list(effects.sgpr_writes);
  return made;
}

}  // namespace

// Called by the module.
void bind_effects(nb::module_& m) { m.def("effects", &effects_dict, "code"_a); }
