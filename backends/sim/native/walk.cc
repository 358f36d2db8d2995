#include "backends/sim/native/walk.h"

#include <algorithm>
#include <utility>

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

struct Range {
  Index least;
  Index most;
};

// The positions along each dimension of the buffer that the operand reaches.
void reach(const Walk& walk, int operand, const BufferInfo& buffer, Index extra_stride,
           Index extra_extent, Range (&range)[device::kMaxRank], bool& outside) {
  Index rest = walk.view[operand].offset;
  outside = rest < 0;
  for (int d = 0; d < buffer.rank; ++d) {
    const Index position = rest / buffer.stride[d];
    range[d] = {position, position};
    rest %= buffer.stride[d];
  }
  const auto extend = [&](Index stride, Index extent) {
    if (extent <= 1 || stride == 0) return;
    Index rest = stride;  // a diagonal moves along several dimensions
    for (int d = 0; d < buffer.rank; ++d) {
      if (buffer.extent[d] <= 1) continue;
      const Index moved = rest / buffer.stride[d] * (extent - 1);
      (moved < 0 ? range[d].least : range[d].most) += moved;
      rest %= buffer.stride[d];
    }
    outside = outside || rest != 0;
  };
  for (int i = 0; i < walk.loops; ++i)
    extend(walk.loop[i].stride[operand], walk.loop[i].extent);
  extend(extra_stride, extra_extent);
}

void check_reach(const Walk& walk, int operand, const BufferInfo& buffer, Index extra_stride,
                 Index extra_extent) {
  if (walk.elements() == 0) return;
  Range range[device::kMaxRank];
  bool outside = false;
  reach(walk, operand, buffer, extra_stride, extra_extent, range, outside);
  for (int d = 0; d < buffer.rank && !outside; ++d)
    if (range[d].least < 0 || range[d].most >= buffer.extent[d])
      fail("the box exceeds buffer '", buffer.name, "': positions ", range[d].least, " .. ",
           range[d].most, " along dimension ", d, ", whose extent is ", buffer.extent[d]);
  if (outside || (buffer.rank == 0 && walk.view[operand].offset != 0))
    fail("the box exceeds buffer '", buffer.name, "' of ", buffer.elements,
         " elements: it starts at element ", walk.view[operand].offset);
}

void check_near(const char* what, Index elements, const BufferInfo& buffer) {
  if (elements < -kFarthest || elements > kFarthest)
    fail("a tile of buffer '", buffer.name, "' ", what, " ", elements);
}

bool joins(const Loop& outer, const Loop& inner) {
  if (outer.has != inner.has) return false;
  for (int k = 0; k < kOperands; ++k)
    if (outer.stride[k] != inner.stride[k] * inner.extent) return false;
  return true;
}

}  // namespace

Index Walk::elements() const {
  Index product = 1;
  for (int i = 0; i < loops; ++i) product *= loop[i].extent;
  return product;
}

Index Walk::elements(int operand) const {
  Index product = 1;
  for (int i = 0; i < loops; ++i)
    if (loop[i].has >> operand & 1) product *= loop[i].extent;
  return product;
}

int Walk::find(Axis axis) const {
  int i = 0;
  while (i < loops && loop[i].axis != axis) ++i;
  return i;
}

void Walk::join(int from, int to) {
  int kept = from;
  for (int i = from; i < to; ++i) {
    if (loop[i].extent == 1) continue;
    if (kept > from && joins(loop[kept - 1], loop[i])) {
      const Index extent = loop[kept - 1].extent;
      loop[kept - 1] = loop[i];
      loop[kept - 1].extent *= extent;
    } else {
      loop[kept++] = loop[i];
    }
  }
  for (int i = to; i < loops; ++i) loop[kept + i - to] = loop[i];
  loops -= to - kept;
}

void Walk::order_by_result() {
  const auto size = [](const Loop& l) { return l.stride[0] < 0 ? -l.stride[0] : l.stride[0]; };
  // Insertion sort: few, and in order already as a rule.
  for (int i = 1; i < loops; ++i)
    for (int j = i; j > 0 && size(loop[j - 1]) < size(loop[j]); --j)
      std::swap(loop[j - 1], loop[j]);
  join(0, loops);
}

int Walk::partition(const bool (&last)[device::kMaxRank]) {
  Loop moved[device::kMaxRank];
  int first = 0;
  int count = 0;
  for (int i = 0; i < loops; ++i) {
    if (last[i]) {
      moved[count++] = loop[i];
    } else {
      loop[first++] = loop[i];
    }
  }
  std::copy(moved, moved + count, loop + first);
  return first;
}

void start_walk(Walk& walk, const Box& box) {
  walk.operands = 0;
  walk.loops = 0;
  Index elements = 1;
  for (const device::Span& span : box) {
    if (span.extent < 0) fail("extent ", span.extent, " of axis ", span.axis, " is negative");
    if (span.extent > std::min(kFarthest, kMostElements / elements))
      fail("the box is too large: extent ", span.extent, " of axis ", span.axis);
    elements *= std::max<Index>(span.extent, 1);
    if (walk.find(span.axis) < walk.loops) fail("the box names axis ", span.axis, " twice");
    Loop& loop = walk.loop[walk.loops++];
    loop = Loop{};
    loop.axis = span.axis;
    loop.extent = span.extent;
  }
}

Index add_tile(Walk& walk, const Tile& tile, LocalMemory& memory, Axis extra,
               Index extra_extent) {
  if (tile.slot >= memory.slots()) fail("a tile that belongs to no buffer");
  const BufferInfo& buffer = memory.buffer_of(tile.slot);
  if (tile.dtype != buffer.dtype)
    fail("a tile of ", name_of(tile.dtype), " in buffer '", buffer.name, "' of ",
         name_of(buffer.dtype));
  check_near("starts at element", tile.offset, buffer);
  if (extra_extent < 0 || extra_extent > kFarthest)
    fail("a table of buffer '", buffer.name, "' has ", extra_extent, " positions");
  const int operand = walk.operands++;
  walk.view[operand] = {false, tile.dtype, tile.slot, tile.offset, 0};
  Index extra_stride = 0;
  bool has_extra = false;
  for (const device::Step& step : tile.axes) {
    check_near("moves by", step.stride, buffer);
    if (step.axis == extra) {
      extra_stride += step.stride;
      has_extra = true;
      continue;
    }
    const int i = walk.find(step.axis);
    if (i == walk.loops)
      fail("a tile of buffer '", buffer.name, "' has axis ", step.axis,
           ", which the box lacks; fix it or add it to the box");
    walk.loop[i].stride[operand] += step.stride;
    check_near("moves by", walk.loop[i].stride[operand], buffer);
    walk.loop[i].has |= static_cast<std::uint8_t>(1 << operand);
  }
  if (extra != device::kNoAxis && !has_extra)
    fail("a tile of buffer '", buffer.name, "' lacks axis ", extra);
  check_reach(walk, operand, buffer, extra_stride, extra_extent);
  return extra_stride;
}

void add_constant(Walk& walk, double value) {
  View& view = walk.view[walk.operands++];
  view = View{};
  view.constant = true;
  view.value = value;
}

}  // namespace sim
