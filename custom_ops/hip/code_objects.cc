#include "code_objects.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "../error.hpp"

namespace zyfa::hip {
namespace {

std::string folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&read_code_object), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::vector<std::string> folders() {
  const char* chosen = std::getenv("ZYFA_CODE_OBJECTS");
  if (chosen == nullptr || *chosen == '\0') {
    const std::string here = folder_of_this_library();
    return {here + "/../kernels/code_objects", here};
  }
  std::vector<std::string> found;
  std::istringstream list(chosen);
  for (std::string folder; std::getline(list, folder, ':');) found.push_back(folder);
  return found;
}

}  // namespace

std::string read_code_object(const std::string& name) {
  std::string tried;
  for (const std::string& folder : folders()) {
    std::ifstream file(folder + "/" + name + ".co", std::ios::binary);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
    tried += (tried.empty() ? "" : ", ") + folder;
  }
  fail<DeviceError>("code object '", name, "': expected ", name, ".co in one of ", tried,
                    "; reinstall with 'pip install .', or set ZYFA_CODE_OBJECTS to its folder");
}

}  // namespace zyfa::hip
