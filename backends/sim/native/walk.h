// How a command walks its box: loops, and where each operand moves along them.
#ifndef BACKENDS_SIM_NATIVE_WALK_H_
#define BACKENDS_SIM_NATIVE_WALK_H_

#include <cstdint>

#include "backends/sim/native/device/device.h"
#include "backends/sim/native/local_memory.h"

namespace sim {

using device::Axis;
using device::Box;
using device::Tile;

inline constexpr int kOperands = 4;  // the result and up to three more

// An operand, resolved: a place in a slot, or a constant.
struct View {
  bool constant = false;
  Dtype dtype = Dtype::f32;
  std::uint32_t slot = 0;
  Index offset = 0;
  double value = 0;
};

struct Loop {
  Axis axis = device::kNoAxis;
  Index extent = 1;
  Index stride[kOperands] = {};  // elements; 0 where the operand lacks the axis
  std::uint8_t has = 0;          // bit i: operand i has the axis
};

struct Walk {
  int operands = 0;
  int loops = 0;
  View view[kOperands];
  Loop loop[device::kMaxRank + 1];  // one more than a box has, for an axis of a table

  Index elements() const;              // of the box
  Index elements(int operand) const;   // that the operand holds
  // The box has no such axis: `loops`.
  int find(Axis axis) const;
  // Drops loops of extent 1 and joins loops `from` .. `to` - 1 that are one for all operands.
  void join(int from, int to);
  // Orders the loops so that the result's memory is walked in order, and joins them.
  void order_by_result();
  // Puts the loops for which `last` says true behind the others, which keep their order; gives
  // how many come first.
  int partition(const bool (&last)[device::kMaxRank]);
};

// What a box, a tile and a table reach at most, so that sums of a few products are in range: more
// elements than any local memory has.
inline constexpr Index kFarthest = Index{1} << 29;
inline constexpr Index kMostElements = Index{1} << 40;  // of a box

// Makes `walk` one over the box, without operands. Throws SimulationError for a box that is none.
void start_walk(Walk& walk, const Box& box);

// Adds a tile as the next operand. `extra` is an axis that the box lacks and the tile must have
// (kNoAxis: none), walked from 0 to `extra_extent` - 1; gives the tile's stride along it.
// Throws SimulationError if the tile is none of this memory's, if it has an axis that the box
// lacks, or if the box leaves the buffer.
Index add_tile(Walk& walk, const Tile& tile, LocalMemory& memory,
               Axis extra = device::kNoAxis, Index extra_extent = 1);
void add_constant(Walk& walk, double value);

// Calls visit(offset, stride, count) for the runs of one operand's elements, each element once
// if no two positions of the walk share it.
template <class Visit>
void for_runs(const Walk& walk, int operand, Visit visit) {
  Index extent[device::kMaxRank + 1];
  Index stride[device::kMaxRank + 1];
  Index at[device::kMaxRank + 1] = {};
  int loops = 0;
  for (int i = 0; i < walk.loops; ++i) {
    if (walk.loop[i].extent == 0) return;
    if (walk.loop[i].stride[operand] == 0 || walk.loop[i].extent == 1) continue;
    extent[loops] = walk.loop[i].extent;
    stride[loops] = walk.loop[i].stride[operand];
    if (loops > 0 && stride[loops - 1] == stride[loops] * extent[loops]) {
      extent[loops - 1] *= extent[loops];
      stride[loops - 1] = stride[loops];
    } else {
      ++loops;
    }
  }
  Index offset = walk.view[operand].offset;
  if (loops == 0) return visit(offset, Index{1}, Index{1});
  const int inner = loops - 1;
  while (true) {
    visit(offset, stride[inner], extent[inner]);
    int i = inner - 1;
    for (; i >= 0; --i) {
      offset += stride[i];
      if (++at[i] < extent[i]) break;
      offset -= stride[i] * extent[i];
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

// Calls visit(offsets) with the offsets of all operands, for each position of the loops
// `from` .. `to` - 1, in order; `start` gives the first offsets.
template <class Visit>
void for_positions(const Walk& walk, int from, int to, const Index (&start)[kOperands],
                   Visit visit) {
  Index at[device::kMaxRank] = {};
  Index offset[kOperands];
  for (int k = 0; k < kOperands; ++k) offset[k] = start[k];
  for (int i = from; i < to; ++i)
    if (walk.loop[i].extent == 0) return;
  while (true) {
    visit(static_cast<const Index(&)[kOperands]>(offset));
    int i = to - 1;
    for (; i >= from; --i) {
      const Loop& loop = walk.loop[i];
      const bool more = ++at[i] < loop.extent;
      for (int k = 0; k < kOperands; ++k)
        offset[k] += more ? loop.stride[k] : -loop.stride[k] * (loop.extent - 1);
      if (more) break;
      at[i] = 0;
    }
    if (i < from) return;
  }
}

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_WALK_H_
