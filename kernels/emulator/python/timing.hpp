// The timed launch as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

#include "timing/timing.hpp"

// Reads {"constants": {...}, "flops": ..., ...}; unknown keys are refused.
zyfa::emulator::timing::Request timing_request(const nanobind::dict& options);
nanobind::dict timing_report(const zyfa::emulator::timing::Report& report);
void bind_timing(nanobind::module_& m);
