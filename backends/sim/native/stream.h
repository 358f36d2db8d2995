// Commands as bytes: how the process that runs a kernel's code sends them to the simulator.
//
// The reader believes nothing: it checks lengths, and the element checks all values, as these bytes are
// the word of a process that runs a foreign library.
#ifndef BACKENDS_SIM_NATIVE_STREAM_H_
#define BACKENDS_SIM_NATIVE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/sim/native/device/device.h"

namespace sim {

enum class Record : std::uint8_t {
  buffer, load, load_shared, number, store, add, send, receive, receive_reduced, map, fill, iota,
  bucketize, take, reduce, scan, matmul, barrier, scalars,
  awaited,         // the program awaits the command before
  number_awaited,  // the program waits for the number
  ended,
  misused,  // the header refused something: a text
};
inline constexpr int kRecords = static_cast<int>(Record::misused) + 1;
inline constexpr std::size_t kMostText = 255;

// A region with the tiles that its slices point to.
struct OwnedRegion {
  device::Region region;
  device::Tile rows[device::kMaxRank];
};

// The number that a program waits for at the end of its commands, by its own word.
struct Asked {
  bool waits = false;
  device::Tensor from{};
  device::List<device::Index> position;
};

class Writer {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if (bytes_.size() - size_ < sizeof(T)) bytes_.resize(2 * bytes_.size() + sizeof(T));
    std::memcpy(bytes_.data() + size_, &value, sizeof(T));
    size_ += sizeof(T);
  }
  void put(std::string_view text);
  void put(const device::List<device::Index>& position);
  void put(const device::Box& box);
  void put(const device::Tile& tile);
  void put(const device::Region& region);
  void put(const device::Operands& operands);
  void put(device::Outside outside) {
    put(outside.allowed);
    put(outside.value);
  }

  std::size_t size() const { return size_; }
  const std::byte* data() const { return bytes_.data(); }
  void clear() { size_ = 0; }

 private:
  std::vector<std::byte> bytes_;  // the first `size_` are written
  std::size_t size_ = 0;
};

// Throws SimulationError for what no writer writes.
class Reader {
 public:
  bool empty() const { return at_ == bytes_.size(); }
  void replace(std::vector<std::byte> bytes) {
    bytes_ = std::move(bytes);
    at_ = 0;
  }

  Record record();
  // The next record, without taking it; `ended` where there is none.
  bool next_is(Record record) const {
    return !empty() && bytes_[at_] == static_cast<std::byte>(record);
  }
  template <class T>
  T number() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  T value_of() {  // of an enum
    return static_cast<T>(number<std::underlying_type_t<T>>());
  }
  bool flag() { return number<std::uint8_t>() != 0; }
  device::Dtype dtype();
  std::string text();
  device::Box box();
  device::Tile tile();
  device::List<device::Index> position();
  Asked asked();
  device::Operands operands();
  device::Outside outside() {
    const bool allowed = flag();
    return {allowed, number<double>()};
  }
  void region(OwnedRegion& into);

 private:
  const std::byte* take(std::size_t count);
  int rank();

  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_STREAM_H_
