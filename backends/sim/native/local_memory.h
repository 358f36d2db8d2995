// The local memory of one processing element: circular buffers, their slots, their values.
#ifndef BACKENDS_SIM_NATIVE_LOCAL_MEMORY_H_
#define BACKENDS_SIM_NATIVE_LOCAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/sim/native/device/device.h"

namespace sim {

using device::Dtype;
using device::Index;

struct BufferInfo {
  std::string name;
  Dtype dtype;
  int rank = 0;
  Index extent[device::kMaxRank];
  Index stride[device::kMaxRank];
  Index elements = 1;  // of one slot
  std::uint32_t first_slot = 0;
  std::uint32_t stages = 1;
};

struct SlotState {
  std::uint32_t buffer;
  std::byte* data = nullptr;         // null when only time is simulated
  std::uint8_t* written = nullptr;   // one flag an element; null when not checked
  Index unwritten = 0;               // how many flags are clear
};

class LocalMemory {
 public:
  // `values`: keep values; `flags`: keep track of which elements were written.
  LocalMemory(Index capacity, bool values, bool flags)
      : capacity_(capacity), values_(values), flags_(flags) {}

  // Throws SimulationError when the buffer does not fit.
  device::Buffer add(const char* name, Dtype dtype, const device::Box& box, Index stages);

  std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }
  SlotState& slot(std::uint32_t slot) { return slots_[slot]; }
  const BufferInfo& buffer_of(std::uint32_t slot) const {
    return buffers_[slots_[slot].buffer];
  }

 private:
  struct Storage {
    std::unique_ptr<std::byte[]> data;
    std::unique_ptr<std::uint8_t[]> written;
  };
  void allocate(const BufferInfo& info);

  Index capacity_;
  bool values_;
  bool flags_;
  Index used_ = 0;
  std::vector<BufferInfo> buffers_;
  std::vector<SlotState> slots_;
  std::vector<Storage> storage_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_LOCAL_MEMORY_H_
