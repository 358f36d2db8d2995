// The reduction engine's commands.
#include <algorithm>
#include <cmath>

#include "backends/sim/native/error.h"
#include "backends/sim/native/execute.h"
#include "backends/sim/native/reduction.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

constexpr Index kRun = 512;  // elements read at once

// The type in which a command reductions, and how its values are read and written.
struct Floats {
  using Sum = double;
  using Item = float;
  static Sum identity(Reduction how, Dtype) { return float_identity(how); }
  static void read(Dtype dtype, const std::byte* data, Index stride, Index n, Item* out) {
    read_floats(dtype, data, stride, n, out);
  }
  static void write(Dtype dtype, std::byte* data, Sum value) { write_double(dtype, data, value); }
};
struct Integers {
  using Sum = std::int64_t;
  using Item = std::int64_t;
  static Sum identity(Reduction how, Dtype dtype) { return integer_identity(how, dtype); }
  static void read(Dtype dtype, const std::byte* data, Index stride, Index n, Item* out) {
    read_integers(dtype, data, stride, n, out);
  }
  static void write(Dtype dtype, std::byte* data, Sum value) {
    write_integers(dtype, data, 1, 1, &value);
  }
};

// The switch outside the loop, so that each loop does one thing.
template <class Sum, class Item>
Sum reduction_run(Reduction how, Sum sum, const Item* items, Index n) {
  switch (how) {
    case Reduction::sum:
      for (Index i = 0; i < n; ++i) sum = reduction(Reduction::sum, sum, Sum{items[i]});
      break;
    case Reduction::prod:
      for (Index i = 0; i < n; ++i) sum = reduction(Reduction::prod, sum, Sum{items[i]});
      break;
    case Reduction::max:
      for (Index i = 0; i < n; ++i) sum = reduction(Reduction::max, sum, Sum{items[i]});
      break;
    case Reduction::min:
      for (Index i = 0; i < n; ++i) sum = reduction(Reduction::min, sum, Sum{items[i]});
      break;
  }
  return sum;
}

// Splits the walk into loops that the result has and loops that are reduced over; gives how many
// are of the first kind.
int split(Walk& walk) {
  bool reduced[device::kMaxRank] = {};
  for (int i = 0; i < walk.loops; ++i) reduced[i] = (walk.loop[i].has & 1) == 0;
  int kept = walk.partition(reduced);
  walk.join(kept, walk.loops);
  const int before = walk.loops;
  walk.join(0, kept);
  return kept - (before - walk.loops);
}

template <class Type>
void reduce(const Command& command, LocalMemory& memory) {
  Walk walk = command.walk;
  const int kept = split(walk);
  std::byte* to = data_of(walk, 0, memory);
  const std::byte* from = data_of(walk, 1, memory);
  const Dtype result = walk.view[0].dtype;
  const Dtype source = walk.view[1].dtype;
  const bool scalar = walk.loops == kept;
  const int inner = scalar ? kept : walk.loops - 1;
  const Index extent = scalar ? 1 : walk.loop[inner].extent;
  const Index stride = scalar ? 1 : walk.loop[inner].stride[1];
  typename Type::Item items[kRun];
  const Index none[kOperands] = {};
  for_positions(walk, 0, kept, none, [&](const Index(&start)[kOperands]) {
    std::byte* place = to + start[0] * size_of(result);
    typename Type::Sum sum = Type::identity(command.reduction, result);
    if (command.accumulate) {
      typename Type::Item old;
      Type::read(result, place, 1, 1, &old);
      sum = old;
    }
    for_positions(walk, kept, inner, start, [&](const Index(&at)[kOperands]) {
      for (Index i = 0; i < extent; i += kRun) {
        const Index n = std::min(kRun, extent - i);
        Type::read(source, from + (at[1] + i * stride) * size_of(source), stride, n, items);
        sum = reduction_run(command.reduction, sum, items, n);
      }
    });
    Type::write(result, place, sum);
  });
}

template <class Type>
void scan(const Command& command, LocalMemory& memory) {
  Walk walk = command.walk;
  bool last[device::kMaxRank] = {};
  last[command.axis_loop] = true;
  const int along = walk.partition(last);
  const Loop& loop = walk.loop[along];
  std::byte* to = data_of(walk, 0, memory);
  const std::byte* from = data_of(walk, 1, memory);
  std::byte* carry = data_of(walk, 2, memory);
  const Dtype dtype[] = {walk.view[0].dtype, walk.view[1].dtype, walk.view[2].dtype};
  const Index none[kOperands] = {};
  for_positions(walk, 0, along, none, [&](const Index(&at)[kOperands]) {
    std::byte* place = carry + at[2] * size_of(dtype[2]);
    typename Type::Item item;
    Type::read(dtype[2], place, 1, 1, &item);
    typename Type::Sum sum = item;
    for (Index i = 0; i < loop.extent; ++i) {
      Type::read(dtype[1], from + (at[1] + i * loop.stride[1]) * size_of(dtype[1]), 1, 1, &item);
      sum = reduction(command.reduction, sum, typename Type::Sum{item});
      Type::write(dtype[0], to + (at[0] + i * loop.stride[0]) * size_of(dtype[0]), sum);
    }
    Type::write(dtype[2], place, sum);
  });
}

}  // namespace

void execute_reduce(const Command& command, LocalMemory& memory) {
  check_written(command.walk, 1, memory);
  if (command.accumulate) check_written(command.walk, 0, memory);
  if (is_float(command.walk.view[0].dtype)) {
    reduce<Floats>(command, memory);
  } else {
    reduce<Integers>(command, memory);
  }
  Walk result = command.walk;  // over an empty axis too, there is a result
  for (int i = 0; i < result.loops; ++i)
    if ((result.loop[i].has & 1) == 0) result.loop[i].extent = 1;
  mark_written(result, 0, memory);
}

void execute_scan(const Command& command, LocalMemory& memory) {
  check_written(command.walk, 1, memory);
  check_written(command.walk, 2, memory);
  if (is_float(command.walk.view[0].dtype)) {
    scan<Floats>(command, memory);
  } else {
    scan<Integers>(command, memory);
  }
  mark_written(command.walk, 0, memory);
}

}  // namespace sim
