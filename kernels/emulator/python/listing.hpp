// The decoded text of a kernel as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

void bind_listing(nanobind::module_& m);
