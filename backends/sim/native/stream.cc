#include "backends/sim/native/stream.h"

#include <algorithm>

#include "backends/sim/native/error.h"

namespace sim {
namespace {

// What a list says of its own size is the program's to write.
template <class T>
std::uint8_t rank_of(const device::List<T>& list) {
  return static_cast<std::uint8_t>(std::clamp(list.size, 0, device::kMaxRank));
}

[[noreturn]] void fail_stream() { fail("the kernel's process sent what is no command"); }

}  // namespace

void Writer::put(std::string_view text) {
  const std::string_view kept = text.substr(0, kMostText);
  put(static_cast<std::uint8_t>(kept.size()));
  for (const char c : kept) put(c);
}

void Writer::put(const device::List<device::Index>& position) {
  const std::uint8_t rank = rank_of(position);
  put(rank);
  for (int i = 0; i < rank; ++i) put(position.at[i]);
}

void Writer::put(const device::Box& box) {
  const std::uint8_t rank = rank_of(box);
  put(rank);
  for (int i = 0; i < rank; ++i) {
    put(box.at[i].axis);
    put(box.at[i].extent);
  }
}

void Writer::put(const device::Tile& tile) {
  put(tile.slot);
  put(tile.dtype);
  put(tile.offset);
  const std::uint8_t rank = rank_of(tile.axes);
  put(rank);
  for (int i = 0; i < rank; ++i) {
    put(tile.axes.at[i].axis);
    put(tile.axes.at[i].stride);
  }
}

void Writer::put(const device::Region& region) {
  const std::uint8_t rank = rank_of(region);
  put(rank);
  for (int i = 0; i < rank; ++i) {
    const device::Slice& slice = region.at[i];
    put(slice.start);
    put(slice.axis);
    put(slice.extent);
    put(slice.step);
    put(slice.rows != nullptr);
    if (slice.rows != nullptr) put(*slice.rows);
    put(slice.along);
  }
}

void Writer::put(const device::Operands& operands) {
  const auto size = static_cast<std::uint8_t>(std::clamp(operands.size, 0, 3));
  put(size);
  for (int i = 0; i < size; ++i) {
    const device::Operand& operand = operands.at[i];
    put(operand.constant);
    if (operand.constant) {
      put(operand.value);
    } else {
      put(operand.tile);
    }
  }
}

const std::byte* Reader::take(std::size_t count) {
  if (count > bytes_.size() - at_) fail_stream();
  const std::byte* first = bytes_.data() + at_;
  at_ += count;
  return first;
}

int Reader::rank() {
  const int size = number<std::uint8_t>();
  if (size > device::kMaxRank) fail_stream();
  return size;
}

Record Reader::record() {
  const int which = number<std::uint8_t>();
  if (which >= kRecords) fail_stream();
  return static_cast<Record>(which);
}

device::Dtype Reader::dtype() {
  const int which = number<std::uint8_t>();
  if (which > static_cast<int>(device::Dtype::u8)) fail("there is no dtype ", which);
  return static_cast<device::Dtype>(which);
}

std::string Reader::text() {
  const std::size_t size = number<std::uint8_t>();
  const std::byte* first = take(size);
  std::string found(size, ' ');
  // A name goes into messages and timelines.
  std::transform(first, first + size, found.begin(), [](std::byte b) {
    const char c = static_cast<char>(b);
    return c >= ' ' && c <= '~' ? c : '?';
  });
  return found;
}

device::Box Reader::box() {
  device::Box box;
  box.size = rank();
  for (int i = 0; i < box.size; ++i) {
    box.at[i].axis = number<device::Axis>();
    box.at[i].extent = number<device::Index>();
  }
  return box;
}

device::Tile Reader::tile() {
  device::Tile tile;
  tile.slot = number<std::uint32_t>();
  tile.dtype = dtype();
  tile.offset = number<device::Index>();
  tile.axes.size = rank();
  for (int i = 0; i < tile.axes.size; ++i) {
    tile.axes.at[i].axis = number<device::Axis>();
    tile.axes.at[i].stride = number<device::Index>();
  }
  return tile;
}

device::List<device::Index> Reader::position() {
  device::List<device::Index> position;
  position.size = rank();
  for (int i = 0; i < position.size; ++i) position.at[i] = number<device::Index>();
  return position;
}

Asked Reader::asked() {
  Asked asked;
  asked.waits = flag();
  if (!asked.waits) return asked;
  asked.from = {number<std::uint32_t>()};
  asked.position = position();
  return asked;
}

device::Operands Reader::operands() {
  device::Operands operands(0);
  operands.size = number<std::uint8_t>();
  if (operands.size > 3) fail_stream();
  for (int i = 0; i < operands.size; ++i) {
    device::Operand& operand = operands.at[i];
    operand.constant = flag();
    if (operand.constant) {
      operand.value = number<double>();
    } else {
      operand.tile = tile();
    }
  }
  return operands;
}

void Reader::region(OwnedRegion& into) {
  into.region.size = rank();
  for (int i = 0; i < into.region.size; ++i) {
    device::Slice& slice = into.region.at[i];
    slice.start = number<device::Index>();
    slice.axis = number<device::Axis>();
    slice.extent = number<device::Index>();
    slice.step = number<device::Index>();
    slice.rows = nullptr;
    if (flag()) {
      into.rows[i] = tile();
      slice.rows = &into.rows[i];
    }
    slice.along = box();
  }
}

}  // namespace sim
