// A tensor in global memory.
#ifndef BACKENDS_SIM_NATIVE_TENSOR_H_
#define BACKENDS_SIM_NATIVE_TENSOR_H_

#include <cstddef>
#include <string>

#include "backends/sim/native/device/device.h"

namespace sim {

struct TensorInfo {
  std::string name;
  device::Dtype dtype = device::Dtype::f32;
  int rank = 0;
  device::Index extent[device::kMaxRank] = {};
  device::Index stride[device::kMaxRank] = {};  // elements, row-major
  std::byte* data = nullptr;
  device::Index bytes = 0;
  device::Index address = 0;  // in global memory; the simulation sets it
  std::size_t number = 0;     // among the tensors of a run; the simulation sets it
  bool input = false;         // which no kernel may store to
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_TENSOR_H_
