#include "backends/sim/native/library.h"

#include <dlfcn.h>

#include "backends/sim/native/error.h"

namespace sim {

Library::Library(const std::string& path)
    : path_(path), handle_(dlopen(path.c_str(), RTLD_LOCAL | RTLD_NOW)) {
  if (handle_ == nullptr) fail("cannot load '", path, "': ", dlerror());
}

Library::~Library() { dlclose(handle_); }

device::Launch Library::find(const std::string& name) const {
  void* found = dlsym(handle_, name.c_str());
  if (found == nullptr) fail("'", path_, "' has no kernel '", name, "'; KERNEL(name) exports one");
  return reinterpret_cast<device::Launch>(found);
}

}  // namespace sim
