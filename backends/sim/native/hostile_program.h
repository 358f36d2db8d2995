// Programs of random, huge and malformed commands, for tests.
#ifndef BACKENDS_SIM_NATIVE_HOSTILE_PROGRAM_H_
#define BACKENDS_SIM_NATIVE_HOSTILE_PROGRAM_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/sim/native/programs.h"
#include "backends/sim/native/tensor.h"
#include "backends/sim/native/value.h"
#include "backends/sim/native/walk.h"

namespace sim {

inline constexpr Index kElements = 4;  // processing elements
inline constexpr int kCommands = 30;   // of a program at most
inline constexpr Axis kAxes = 4;       // that a program uses

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  Index below(Index end) { return static_cast<Index>(bits() % static_cast<std::uint64_t>(end)); }
  bool one_in(Index count) { return below(count) == 0; }
  template <class T, std::size_t N>
  T of(const T (&values)[N]) {
    return values[below(static_cast<Index>(N))];
  }

 private:
  std::uint64_t state_;
};

inline constexpr Index kHuge[] = {
    0, -1, 1, 7, -7, 63, 4096, Index{1} << 15, Index{1} << 16, (Index{1} << 29) + 1,
    (Index{1} << 31) - 1, Index{1} << 31, -(Index{1} << 31), Index{1} << 32, Index{1} << 40,
    Index{1} << 61, Index{1} << 62, -(Index{1} << 62), std::numeric_limits<Index>::max(),
    std::numeric_limits<Index>::max() - 1, std::numeric_limits<Index>::min()};
inline constexpr double kValues[] = {
    0.0, -0.0, 1.0, -1.5, 3.0, 1e-45, 3.4e38, 1e300, -1e300, 9.3e18, 65504.0, 2147483648.0,
    std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::quiet_NaN()};
inline constexpr Dtype kTypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64,
                            Dtype::b8,  Dtype::i16, Dtype::i8,   Dtype::u8};

// The commands of one processing element: mostly right, so that many are carried out, with numbers
// that are not.
class Program {
 public:
  Program(Random& random, const std::vector<TensorInfo>& tensors, Index wild)
      : random_(random), tensors_(tensors), wild_(wild) {}

  std::vector<std::byte> made() {
    for (Index& extent : extents_) extent = 1 + random_.below(5);
    for (Dtype& dtype : liked_) dtype = random_.of(kTypes);
    const Index buffers = 3 + random_.below(6);
    for (Index i = 0; i < buffers; ++i) buffer();
    const Index commands = random_.below(random_.one_in(3) ? kCommands : 6);
    for (Index i = 0; i < commands; ++i) command();
    out_.put(Record::ended);
    std::vector<std::byte> bytes(out_.data(), out_.data() + out_.size());
    if (wild())  // a stream that is none
      for (Index i = 0; i < 1 + random_.below(8); ++i)
        bytes[static_cast<std::size_t>(random_.below(static_cast<Index>(bytes.size())))] =
            static_cast<std::byte>(random_.bits());
    if (wild()) bytes.resize(place_in(bytes));
    return bytes;
  }

 private:
  struct Held {
    std::uint32_t slot;
    Dtype dtype;
    Box box;
  };

  bool wild() { return random_.one_in(wild_); }
  Index number(Index right) { return wild() ? random_.of(kHuge) : right; }
  Axis axis() { return static_cast<Axis>(wild() ? random_.below(70'000) : random_.below(kAxes)); }
  Dtype dtype() { return wild() ? static_cast<Dtype>(random_.below(256)) : random_.of(liked_); }

  // Some of the program's axes, in any order, all with the program's extents,
  // so that tiles fit together.
  Box box() {
    Box made;
    const Axis first = static_cast<Axis>(random_.below(kAxes));
    for (Axis i = 0; i < kAxes; ++i) {
      const Axis at = static_cast<Axis>((first + i) % kAxes);
      if (random_.one_in(2)) continue;
      made.add({wild() ? axis() : at, number(extents_[at])});
    }
    if (wild()) made.size = static_cast<int>(random_.below(13));
    return made;
  }

  void buffer() {
    const Held held{slots_, dtype(), box()};
    const Index stages = number(1 + random_.below(2));
    out_.put(Record::buffer);
    out_.put(std::string_view("a"));
    out_.put(held.dtype);
    out_.put(held.box);
    out_.put(stages);
    slots_ += static_cast<std::uint32_t>(stages);
    held_.push_back(held);
    if (random_.one_in(8)) return;  // never written
    out_.put(Record::fill);
    out_.put(tile(held));
    out_.put(random_.of(kValues));
    out_.put(held.box);
    wait();
  }

  Tile tile(const Held& held) {
    Tile tile;
    tile.slot = wild() ? static_cast<std::uint32_t>(random_.bits()) : held.slot;
    tile.dtype = wild() ? dtype() : held.dtype;
    Index stride = 1;
    tile.axes.size = held.box.size;
    for (int i = held.box.size - 1; i >= 0; --i) {
      tile.axes.at[i] = {wild() ? axis() : held.box.at[i].axis, number(stride)};
      // In numbers that wrap.
      const auto extent = static_cast<std::uint64_t>(held.box.at[i].extent);
      stride = static_cast<Index>(static_cast<std::uint64_t>(stride) * extent);
    }
    if (wild() && tile.axes.size > 0) --tile.axes.size;
    if (wild() && tile.axes.size < device::kMaxRank) tile.axes.at[tile.axes.size++] = {axis(),
        number(0)};
    tile.offset = number(0);
    return tile;
  }
  template <class T>
  std::size_t place_in(const std::vector<T>& list) {
    return static_cast<std::size_t>(random_.below(static_cast<Index>(list.size())));
  }
  const Held& any() { return held_[place_in(held_)]; }
  // One for which something holds, if some tries find it.
  template <class Holds>
  const Held& such(Holds holds) {
    const Held* found = &any();
    for (int i = 0; i < 12 && !holds(*found); ++i) found = &any();
    return *found;
  }
  static bool has(const Box& box, Axis axis) {
    for (const device::Span& span : box)
      if (span.axis == axis) return true;
    return false;
  }
  // All axes of the one are in the other.
  static bool within(const Box& inner, const Box& outer) {
    for (const device::Span& span : inner)
      if (!has(outer, span.axis)) return false;
    return true;
  }
  const Held& operand(const Box& walked, Dtype dtype) {
    return such([&](const Held& h) { return within(h.box, walked) &&
        is_float(h.dtype) == is_float(dtype); });
  }
  Box walk(Box box) {
    for (int i = 0; i < box.size; ++i) box.at[i].extent = number(box.at[i].extent);
    return box;
  }
  Box without(const Box& box, Axis axis) {
    Box rest;
    for (const device::Span& span : box)
      if (span.axis != axis || wild()) rest.add(span);
    return rest;
  }
  Box both(const Box& a, const Box& b) {
    Box made = a;
    for (const device::Span& span : b)
      if (!has(made, span.axis) && made.size < device::kMaxRank) made.add(span);
    return made;
  }

  void wait() {
    if (!wild()) out_.put(Record::awaited);
  }

  // A region of a tensor and, as a rule, a tile that it fits.
  void transfer(Record record) {
    const Held& held = any();
    std::uint32_t which = 0;
    for (int i = 0; i < 60; ++i) {
      which = static_cast<std::uint32_t>(random_.below(static_cast<Index>(tensors_.size())));
      const bool stores = record == Record::store || record == Record::add;
      if (tensors_[which].dtype == held.dtype && tensors_[which].rank >= held.box.size &&
          !(stores && tensors_[which].input)) break;
    }
    const TensorInfo& tensor = tensors_[which];
    device::Region region;
    const Tile rows = tile(such([](const Held& h) { return is_index(h.dtype) &&
        h.box.size <= 1; }));
    region.size = wild() ? static_cast<int>(random_.below(13)) : tensor.rank;
    for (int d = 0; d < region.size; ++d) {
      device::Slice& slice = region.at[d];
      const bool runs = d < held.box.size;
      slice.axis = runs ? held.box.at[d].axis : device::kNoAxis;
      slice.extent = number(runs ? held.box.at[d].extent : 1);
      slice.start = number(random_.one_in(4));
      slice.step = number(1 + random_.one_in(6));
      if (random_.one_in(5)) slice.rows = &rows;
      if (slice.rows != nullptr && random_.one_in(2)) slice.along = random_.one_in(2)
          ? held.box : box();
    }
    const std::uint32_t id = wild() ? static_cast<std::uint32_t>(random_.bits()) : which;
    out_.put(record);
    if (record == Record::store || record == Record::add) {
      out_.put(id);
      out_.put(region);
      out_.put(tile(held));
      return wait();
    }
    out_.put(tile(held));
    out_.put(id);
    out_.put(region);
    if (record == Record::load_shared) {
      out_.put(number(0));
      out_.put(number(1 + random_.below(kElements)));
    }
    out_.put(device::Outside{!random_.one_in(3), random_.of(kValues)});
    wait();
  }

  void number_read() {
    if (wild()) return out_.put(Record::number_awaited);
    std::uint32_t which = 0;
    for (int i = 0; i < 60; ++i) {
      which = static_cast<std::uint32_t>(random_.below(static_cast<Index>(tensors_.size())));
      if (is_index(tensors_[which].dtype)) break;
    }
    out_.put(Record::number);
    out_.put(which);
    const int rank = tensors_[which].rank;
    out_.put(static_cast<std::uint8_t>(rank));
    for (int d = 0; d < rank; ++d) out_.put(number(0));
    out_.put(Record::number_awaited);
  }

  void command() {
    const auto record = static_cast<Record>(random_.below(static_cast<Index>(Record::scalars) + 1));
    switch (record) {
      case Record::buffer: return buffer();
      case Record::load: case Record::load_shared: case Record::store: case Record::add:
        return transfer(record);
      case Record::number: return number_read();
      case Record::barrier:
        out_.put(record);
        return wait();
      case Record::scalars:
        out_.put(record);
        return out_.put(number(random_.below(200)));
      case Record::send: case Record::receive: case Record::receive_reduced:
        return mesh(record);
      case Record::take: case Record::bucketize: return look_up(record);
      default: break;
    }
    const Held& to = any();
    const Held& a = such([&](const Held& h) { return is_float(h.dtype) == is_float(to.dtype); });
    if (record == Record::map) return map(to);
    out_.put(record);
    if (record == Record::fill) {
      out_.put(tile(to));
      out_.put(random_.of(kValues));
      out_.put(walk(to.box));
    } else if (record == Record::iota) {
      out_.put(tile(to));
      out_.put(to.box.size > 0 ? to.box.at[0].axis : axis());
      out_.put(number(0));
      out_.put(walk(to.box));
    } else if (record == Record::reduce) {
      out_.put(reduction());
      out_.put(tile(to));
      out_.put(tile(a));
      out_.put(walk(both(to.box, a.box)));
      out_.put(random_.one_in(2));
    } else if (record == Record::scan) {
      const Axis along = to.box.size > 0 ? to.box.at[0].axis : axis();
      const Box rest = without(to.box, along);
      out_.put(reduction());
      out_.put(tile(to));
      out_.put(tile(operand(to.box, to.dtype)));
      out_.put(along);
      out_.put(tile(such([&](const Held& h) {
        return within(h.box, rest) && within(rest, h.box) &&
            is_float(h.dtype) == is_float(to.dtype);
      })));
      out_.put(walk(to.box));
    } else {  // matmul
      const Held& sum =
          such([](const Held& h) { return h.dtype == Dtype::f32 || h.dtype == Dtype::i32; });
      const Held& left =
          such([&](const Held& h) { return is_float(h.dtype) == is_float(sum.dtype); });
      const Held& right = such([&](const Held& h) {
        return h.dtype == left.dtype && within(both(left.box, h.box), both(sum.box, h.box));
      });
      out_.put(tile(sum));
      out_.put(tile(left));
      out_.put(tile(right));
      out_.put(walk(both(sum.box, both(left.box, right.box))));
      out_.put(random_.one_in(2));
    }
    wait();
  }

  // Sends go round, so that each is met where the programs are alike but for the peer.
  void mesh(Record record) {
    const Held& held = any();
    const Box walked = walk(held.box);
    const Index peer = number(random_.below(kElements));
    const auto send = [&] {
      out_.put(Record::send);
      out_.put(peer);
      out_.put(tile(held));
      out_.put(walked);
      wait();
    };
    if (record == Record::send) send();
    out_.put(record == Record::send ? Record::receive : record);
    out_.put(tile(held));
    out_.put(peer);
    out_.put(walked);
    if (record == Record::receive_reduced) {
      out_.put(reduction());
      wait();
      return send();
    }
    wait();
    if (record == Record::receive) send();
  }

  void map(const Held& to) {
    const auto op = static_cast<device::Op>(random_.below(wild() ? 256 : 59));
    const bool three = op == device::Op::select || op == device::Op::fma;
    const bool one = op <= device::Op::bit_not || (op >= device::Op::exp &&
        op != device::Op::pow && op < device::Op::atan2);
    device::Operands operands(0);
    operands.size = wild() ? static_cast<int>(random_.below(4)) : three ? 3 : one ? 1 : 2;
    for (int i = 0; i < operands.size; ++i) {
      if (random_.one_in(3)) {
        operands.at[i] = device::Operand(random_.of(kValues));
      } else {
        operands.at[i] = device::Operand(tile(operand(to.box, to.dtype)));
      }
    }
    out_.put(Record::map);
    out_.put(op);
    out_.put(tile(to));
    out_.put(operands);
    out_.put(walk(to.box));
    wait();
  }

  void look_up(Record record) {
    const bool takes = record == Record::take;
    const Held& to = such([&](const Held& h) { return takes || is_index(h.dtype); });
    // The table has an axis that the box lacks.
    const Held& table = such([&](const Held& h) {
      return h.box.size > 0 && !has(to.box, h.box.at[0].axis) && within(without(h.box,
          h.box.at[0].axis), to.box);
    });
    const Axis along = table.box.size > 0 ? table.box.at[0].axis : axis();
    const Index count = number(table.box.size > 0 ? 1 + random_.below(std::max<Index>(1,
        table.box.at[0].extent)) : 1);
    const Held& other = such([&](const Held& h) {
      return within(h.box, to.box) && (takes
          ? is_index(h.dtype) : is_float(h.dtype) == is_float(table.dtype));
    });
    out_.put(record);
    out_.put(tile(to));
    out_.put(tile(takes ? table : other));
    if (!takes) out_.put(tile(table));
    out_.put(along);
    out_.put(count);
    if (takes) out_.put(tile(other));
    out_.put(walk(to.box));
    wait();
  }

  device::Reduction reduction() {
    return static_cast<device::Reduction>(random_.below(wild() ? 256 : 4));
  }

  Random& random_;
  const std::vector<TensorInfo>& tensors_;
  Index wild_;
  Writer out_;
  std::vector<Held> held_;
  Index extents_[kAxes] = {};
  Dtype liked_[3] = {};
  std::uint32_t slots_ = 0;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_HOSTILE_PROGRAM_H_
