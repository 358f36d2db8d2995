// Buffers, and the walks over them.
#include "backends/sim/native/local_memory.h"

#include <vector>

#include "backends/sim/native/error.h"
#include "backends/sim/native/execute.h"
#include "backends/sim/native/expect.h"
#include "backends/sim/native/walk.h"

namespace sim {
namespace {

enum : Axis { M, N, P, Q };

void buffers_take_what_they_need_and_no_more() {
  LocalMemory memory(1000, true, true);
  device::Buffer a = memory.add("a", Dtype::f16, {{M, 5}, {N, 7}}, 3);  // 210, rounded to 216
  EXPECT(a.tile().axes.at[0].stride == 7 && a.tile().axes.at[1].stride == 1);
  EXPECT(a.next().slot == 1 && a.next().slot == 2 && a.next().slot == 0);
  EXPECT(memory.slots() == 3);
  const auto too_much = [&] { memory.add("b", Dtype::f32, {{M, 197}}, 1); };
  EXPECT(message_of<SimulationError>(too_much) == "buffer 'b' needs 792 bytes, 784 of 1000 left");
  memory.add("c", Dtype::f32, {{M, 196}}, 1);
}

void slots_know_what_was_written() {
  LocalMemory memory(1000, true, true);
  const Tile tile = memory.add("a", Dtype::f32, {{M, 4}, {N, 6}}, 1).tile();
  Walk column, all;
  start_walk(column, {{M, 4}});
  add_tile(column, tile.fix(N, 2), memory);
  start_walk(all, {{M, 4}, {N, 6}});
  add_tile(all, tile, memory);
  mark_written(column, 0, memory);
  check_written(column, 0, memory);
  EXPECT(memory.slot(0).unwritten == 20);
  EXPECT(message_of<SimulationError>([&] { check_written(all, 0, memory); })
             .starts_with("reads element 0 of buffer 'a' (slot 0)"));
  mark_written(all, 0, memory);
  EXPECT(memory.slot(0).unwritten == 0);
  check_written(all, 0, memory);
}

std::vector<Index> offsets(const Walk& walk) {
  std::vector<Index> out;
  for_runs(walk, 0, [&](Index offset, Index stride, Index n) {
    for (Index i = 0; i < n; ++i) out.push_back(offset + i * stride);
  });
  return out;
}

void loops_are_joined_where_memory_is_contiguous() {
  LocalMemory memory(4096, false, false);
  const Tile tile = memory.add("a", Dtype::f32, {{M, 4}, {N, 6}}, 1).tile();
  Walk walk;
  start_walk(walk, {{N, 6}, {M, 4}});
  add_tile(walk, tile, memory);
  walk.order_by_result();
  EXPECT(walk.loops == 1 && walk.loop[0].extent == 24 && walk.loop[0].stride[0] == 1);
  Walk part;
  start_walk(part, {{M, 2}, {N, 3}});
  add_tile(part, tile.shift(M, 1).shift(N, 2), memory);
  EXPECT((offsets(part) == std::vector<Index>{8, 9, 10, 14, 15, 16}));
}

void windows_are_checked_position_by_position() {
  LocalMemory memory(4096, false, false);
  const Tile tile = memory.add("a", Dtype::f32, {{M, 9}, {N, 2}}, 1).tile();
  const Tile window = tile.window(M, {{P, 2}, {Q, 1}}).fix(N, 1);
  const auto walk = [&](Index p, Index q) {
    Walk made;
    start_walk(made, {{P, p}, {Q, q}});
    add_tile(made, window, memory);
    return offsets(made);
  };
  EXPECT((walk(2, 3) == std::vector<Index>{1, 3, 5, 5, 7, 9}));
  EXPECT(walk(4, 3).back() == 17);
  EXPECT(message_of<SimulationError>([&] { walk(4, 4); })
             .starts_with("the box exceeds buffer 'a': positions 0 .. 9 along dimension 0"));
  // Backwards: from the last position down.
  Walk back;
  start_walk(back, {{P, 9}});
  add_tile(back, tile.fix(N, 0).shift(M, 8).window(M, device::Step{P, -1}), memory);
  EXPECT(offsets(back).front() == 16 && offsets(back).back() == 0);
}

}  // namespace
}  // namespace sim

int main() {
  sim::buffers_take_what_they_need_and_no_more();
  sim::slots_know_what_was_written();
  sim::loops_are_joined_where_memory_is_contiguous();
  sim::windows_are_checked_position_by_position();
  return sim::failures != 0;
}
