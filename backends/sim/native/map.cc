// Elementwise commands.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "backends/sim/native/arithmetic.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/execute.h"
#include "backends/sim/native/reduction.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

constexpr Index kRun = 512;  // elements computed at once

void read(Dtype dtype, const std::byte* data, Index stride, Index n, float* out) {
  read_floats(dtype, data, stride, n, out);
}
void read(Dtype dtype, const std::byte* data, Index stride, Index n, std::int64_t* out) {
  read_integers(dtype, data, stride, n, out);
}
void write(Dtype dtype, std::byte* data, Index stride, Index n, const float* in) {
  write_floats(dtype, data, stride, n, in);
}
void write(Dtype dtype, std::byte* data, Index stride, Index n, const std::int64_t* in) {
  write_integers(dtype, data, stride, n, in);
}

// Runs of the innermost loop: the walk without it, and its length and strides.
struct Inner {
  Index extent = 1;
  Index stride[kOperands] = {};
  int outer = 0;
};

Inner inner_of(const Walk& walk) {
  Inner inner;
  if (walk.loops == 0) return inner;
  inner.outer = walk.loops - 1;
  inner.extent = walk.loop[inner.outer].extent;
  for (int k = 0; k < kOperands; ++k) inner.stride[k] = walk.loop[inner.outer].stride[k];
  return inner;
}

// Calls visit(offsets, n, strides) for runs of at most kRun elements that cover the walk.
template <class Visit>
void for_pieces(const Walk& walk, Visit visit) {
  const Inner inner = inner_of(walk);
  const Index none[kOperands] = {};
  for_positions(walk, 0, inner.outer, none, [&](const Index(&start)[kOperands]) {
    Index at[kOperands];
    for (Index i = 0; i < inner.extent; i += kRun) {
      for (int k = 0; k < kOperands; ++k) at[k] = start[k] + i * inner.stride[k];
      visit(at, std::min(kRun, inner.extent - i), inner.stride);
    }
  });
}

// An operand in the result's slot, but seen differently: writing might spoil what is still read.
bool overlaps(const Walk& walk) {
  for (int k = 1; k < walk.operands; ++k) {
    if (walk.view[k].constant || walk.view[k].slot != walk.view[0].slot) continue;
    if (walk.view[k].offset != walk.view[0].offset) return true;
    for (int i = 0; i < walk.loops; ++i)
      if (walk.loop[i].stride[k] != walk.loop[i].stride[0]) return true;
  }
  return false;
}

// A number as an integer: toward zero, and the least or largest beyond those.
std::int64_t to_integer(double value) {
  constexpr double kEnd = 0x1p63;
  if (std::isnan(value)) fail("a NaN is no integer");
  if (value >= kEnd) return std::numeric_limits<std::int64_t>::max();
  return value < -kEnd ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(value);
}

// A map of operands that are read as In, with results that are written as Out.
template <class In, class Out = In>
class Mapper {
 public:
  Mapper(const Command& command, LocalMemory& memory, const Tables& tables)
      : command_(command), walk_(command.walk), tables_(tables) {
    for (int k = 0; k < walk_.operands; ++k) {
      data_[k] = data_of(walk_, k, memory);
      if (walk_.view[k].constant)
        std::fill(in_[k], in_[k] + kRun, constant(walk_.view[k].value));
    }
  }

  static In constant(double value) {
    if constexpr (std::is_integral_v<In>) return to_integer(value);
    return static_cast<In>(value);
  }

  void run() {
    if (!overlaps(walk_)) {
      for_pieces(walk_, [&](const Index(&at)[kOperands], Index n, const Index* stride) {
        compute(at, n, stride, out_);
        put(at[0], n, stride[0], out_);
      });
      return;
    }
    std::vector<Out> all(static_cast<std::size_t>(walk_.elements()));
    Out* next = all.data();
    for_pieces(walk_, [&](const Index(&at)[kOperands], Index n, const Index* stride) {
      compute(at, n, stride, next);
      next += n;
    });
    next = all.data();
    for_pieces(walk_, [&](const Index(&at)[kOperands], Index n, const Index* stride) {
      put(at[0], n, stride[0], next);
      next += n;
    });
  }

 private:
  void compute(const Index (&at)[kOperands], Index n, const Index* stride, Out* out) {
    for (int k = 1; k < walk_.operands; ++k) {
      const View& view = walk_.view[k];
      if (!view.constant)
        read(view.dtype, data_[k] + at[k] * size_of(view.dtype), stride[k], n, in_[k]);
    }
    apply(command_.op, tables_, n, in_[1], in_[2], in_[3], out);
  }
  void put(Index at, Index n, Index stride, const Out* values) {
    const Dtype dtype = walk_.view[0].dtype;
    write(dtype, data_[0] + at * size_of(dtype), stride, n, values);
  }

  const Command& command_;
  const Walk& walk_;
  const Tables& tables_;
  std::byte* data_[kOperands] = {};
  In in_[kOperands][kRun];
  Out out_[kRun];
};

bool in_floats(const Command& command) {
  if (command.op == Op::div || command.op >= Op::exp) return true;
  const Walk& walk = command.walk;
  bool any_tile = false;
  for (int k = 1; k < walk.operands; ++k) {
    const View& view = walk.view[k];
    any_tile |= !view.constant;
    if (!view.constant && is_float(view.dtype)) return true;
    if (view.constant && !(std::abs(view.value) < 0x1p62 && view.value == std::floor(view.value)))
      return true;
  }
  return !any_tile && is_float(walk.view[0].dtype);
}

}  // namespace

void execute_map(const Command& command, LocalMemory& memory, const Tables& tables) {
  for (int k = 1; k < command.walk.operands; ++k) check_written(command.walk, k, memory);
  if (command.walk.elements() > 0) {
    if (command.op == Op::uniform) {
      Mapper<std::int64_t, float>(command, memory, tables).run();
    } else if (in_floats(command)) {
      Mapper<float>(command, memory, tables).run();
    } else {
      Mapper<std::int64_t>(command, memory, tables).run();
    }
  }
  mark_written(command.walk, 0, memory);
}

// The integer of a dtype that stands for a number: its least or largest for an infinity.
std::int64_t integer_of(double value, Dtype dtype) {
  if (!is_index(dtype)) return 0;
  if (std::isinf(value)) return integer_identity(value > 0 ? Reduction::min : Reduction::max, dtype);
  return to_integer(value);
}

void execute_fill(const Command& command, LocalMemory& memory) {
  const Walk& walk = command.walk;
  const Dtype dtype = walk.view[0].dtype;
  std::byte* data = data_of(walk, 0, memory);
  const std::vector<float> floats(kRun, static_cast<float>(command.value));
  const std::vector<std::int64_t> integers(kRun, integer_of(command.value, dtype));
  for_pieces(walk, [&](const Index(&at)[kOperands], Index n, const Index* stride) {
    std::byte* to = data + at[0] * size_of(dtype);
    if (is_index(dtype)) {
      write_integers(dtype, to, stride[0], n, integers.data());
    } else {
      write_floats(dtype, to, stride[0], n, floats.data());
    }
  });
  mark_written(walk, 0, memory);
}

void execute_iota(const Command& command, LocalMemory& memory) {
  Walk walk = command.walk;
  // The position along the axis rides along as one more operand's offset.
  walk.loop[command.axis_loop].stride[1] = 1;
  const Dtype dtype = walk.view[0].dtype;
  std::byte* data = data_of(walk, 0, memory);
  const Index none[kOperands] = {};
  for_positions(walk, 0, walk.loops, none, [&](const Index(&at)[kOperands]) {
    const std::int64_t value = command.start + at[1];
    write_integers(dtype, data + at[0] * size_of(dtype), 1, 1, &value);
  });
  mark_written(command.walk, 0, memory);
}

}  // namespace sim
