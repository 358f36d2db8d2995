#include "backends/sim/native/local_memory.h"

#include <cstring>

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

constexpr Index kAlign = 8;
constexpr int kPoison = 0xff;  // a NaN in every float dtype

Index round_up(Index bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

device::Buffer LocalMemory::add(const char* name, Dtype dtype, const device::Box& box,
                                Index stages) {
  BufferInfo info;
  info.name = name;
  info.dtype = dtype;
  info.rank = box.size;
  if (stages < 1) fail("buffer '", name, "' has ", stages, " stages; it must be at least 1");
  device::Buffer handle;
  for (int i = box.size - 1; i >= 0; --i) {
    const device::Span& span = box.at[i];
    if (span.extent < 1)
      fail("buffer '", name, "' has extent ", span.extent, " along axis ", span.axis,
           "; it must be at least 1");
    if (span.extent > capacity_ / info.elements)
      fail("buffer '", name, "' has more elements than local memory has bytes (", capacity_, ")");
    info.extent[i] = span.extent;
    info.stride[i] = info.elements;
    info.elements *= span.extent;
  }
  for (int i = 0; i < box.size; ++i) {
    for (int j = 0; j < i; ++j)
      if (box.at[j].axis == box.at[i].axis)
        fail("buffer '", name, "' names axis ", box.at[i].axis, " twice");
    handle.shape.axes.add({box.at[i].axis, info.stride[i]});
  }
  if (stages > capacity_) fail("buffer '", name, "' has ", stages, " stages; they do not fit");
  const Index bytes = round_up(info.elements * size_of(dtype) * stages);
  if (bytes > capacity_ - used_)
    fail("buffer '", name, "' needs ", bytes, " bytes, ", capacity_ - used_, " of ", capacity_,
         " left");
  used_ += bytes;
  info.stages = static_cast<std::uint32_t>(stages);
  info.first_slot = slots();
  handle.id = static_cast<std::uint32_t>(buffers_.size());
  handle.first_slot = info.first_slot;
  handle.stages = info.stages;
  handle.shape.slot = info.first_slot;
  handle.shape.dtype = dtype;
  allocate(info);
  buffers_.push_back(std::move(info));
  return handle;
}

void LocalMemory::allocate(const BufferInfo& info) {
  Storage storage;
  const auto all = static_cast<std::size_t>(info.elements) * info.stages;
  const auto size = static_cast<std::size_t>(size_of(info.dtype));
  if (values_) {
    storage.data = std::make_unique_for_overwrite<std::byte[]>(all * size);
    std::memset(storage.data.get(), kPoison, all * size);
  }
  if (flags_) storage.written = std::make_unique<std::uint8_t[]>(all);
  for (std::uint32_t i = 0; i < info.stages; ++i) {
    const auto first = static_cast<std::size_t>(info.elements) * i;
    SlotState slot;
    slot.buffer = static_cast<std::uint32_t>(buffers_.size());
    if (values_) slot.data = storage.data.get() + first * size;
    if (flags_) {
      slot.written = storage.written.get() + first;
      slot.unwritten = info.elements;
    }
    slots_.push_back(slot);
  }
  storage_.push_back(std::move(storage));
}

}  // namespace sim
