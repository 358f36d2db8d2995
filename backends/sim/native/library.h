// A compiled kernel library.
#ifndef BACKENDS_SIM_NATIVE_LIBRARY_H_
#define BACKENDS_SIM_NATIVE_LIBRARY_H_

#include <string>

#include "backends/sim/native/device/device.h"

namespace sim {

class Library {
 public:
  // Throws SimulationError if the library cannot be loaded.
  explicit Library(const std::string& path);
  Library(const Library&) = delete;
  ~Library();

  // The exported KERNEL(name). Throws SimulationError if there is none.
  device::Launch find(const std::string& name) const;

 private:
  std::string path_;
  void* handle_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_LIBRARY_H_
