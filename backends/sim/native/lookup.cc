// Commands whose result depends on positions found or given: bucketize and take.
#include <cmath>

#include "backends/sim/native/error.h"
#include "backends/sim/native/execute.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

float float_at(Dtype dtype, const std::byte* data, Index i) {
  float value;
  read_floats(dtype, data + i * size_of(dtype), 1, 1, &value);
  return value;
}

std::int64_t integer_at(Dtype dtype, const std::byte* data, Index i) {
  std::int64_t value;
  read_integers(dtype, data + i * size_of(dtype), 1, 1, &value);
  return value;
}

// How many of `count` sorted values, the i-th of which is border(i), are below the value.
template <class T, class Border>
Index count_below(T value, Index count, Border border) {
  Index first = 0;
  while (count > 0) {
    const Index half = count / 2;
    if (!(border(first + half) >= value)) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

// The operand's walk, with the axis that the box lacks.
Walk with_axis(const Command& command, int operand) {
  Walk walk = command.walk;
  Loop& loop = walk.loop[walk.loops++];
  loop = Loop{};
  loop.extent = command.count;
  loop.stride[operand] = command.axis_stride;
  return walk;
}

}  // namespace

void execute_bucketize(const Command& command, LocalMemory& memory) {
  const Walk& walk = command.walk;
  check_written(walk, 1, memory);
  check_written(with_axis(command, 2), 2, memory);
  const View* view = walk.view;
  std::byte* to = data_of(walk, 0, memory);
  const std::byte* values = data_of(walk, 1, memory);
  const std::byte* borders = data_of(walk, 2, memory);
  const Index step = command.axis_stride;
  const Index none[kOperands] = {};
  for_positions(walk, 0, walk.loops, none, [&](const Index(&at)[kOperands]) {
    std::int64_t below;
    if (is_float(view[1].dtype)) {
      below = count_below(float_at(view[1].dtype, values, at[1]), command.count, [&](Index i) {
        return float_at(view[2].dtype, borders, at[2] + i * step);
      });
    } else {
      below = count_below(integer_at(view[1].dtype, values, at[1]), command.count, [&](Index i) {
        return integer_at(view[2].dtype, borders, at[2] + i * step);
      });
    }
    write_integers(view[0].dtype, to + at[0] * size_of(view[0].dtype), 1, 1, &below);
  });
  mark_written(walk, 0, memory);
}

void execute_take(const Command& command, LocalMemory& memory) {
  const Walk& walk = command.walk;
  check_written(with_axis(command, 1), 1, memory);
  check_written(walk, 2, memory);
  const View* view = walk.view;
  std::byte* to = data_of(walk, 0, memory);
  const std::byte* table = data_of(walk, 1, memory);
  const std::byte* positions = data_of(walk, 2, memory);
  const Index none[kOperands] = {};
  for_positions(walk, 0, walk.loops, none, [&](const Index(&at)[kOperands]) {
    const std::int64_t position = integer_at(view[2].dtype, positions, at[2]);
    if (position < 0 || position >= command.count)
      fail("position ", position, " is out of range; the table '",
           memory.buffer_of(view[1].slot).name, "' has ", command.count, " valid positions");
    const Index from = at[1] + position * command.axis_stride;
    std::byte* place = to + at[0] * size_of(view[0].dtype);
    if (is_float(view[1].dtype)) {
      const float value = float_at(view[1].dtype, table, from);
      write_floats(view[0].dtype, place, 1, 1, &value);
    } else {
      const std::int64_t value = integer_at(view[1].dtype, table, from);
      write_integers(view[0].dtype, place, 1, 1, &value);
    }
  });
  mark_written(walk, 0, memory);
}

}  // namespace sim
