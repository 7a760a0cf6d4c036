// The files with the kernels' machine code.
#pragma once

#include <string>

namespace zyfa::hip {

// Contents of <name>.co: from the folders that ZYFA_CODE_OBJECTS lists (with colons between them), else from
// ../kernels/code_objects of the folder of this library, else from that folder itself. Throws Error.
std::string read_code_object(const std::string& name);

}  // namespace zyfa::hip
