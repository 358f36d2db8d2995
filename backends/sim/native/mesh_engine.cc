// The processes that move tiles between processing elements.
#include <algorithm>
#include <vector>

#include "backends/sim/native/chip.h"
#include "backends/sim/native/element.h"
#include "backends/sim/native/engine.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/execute.h"
#include "backends/sim/native/reduction.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

// The receive that the head of `engine` meets, if it is there already; or the other way round.
Engine* partner_of(Engine& engine, Unit unit) {
  Engine& other =
      engine.chip().elements[static_cast<std::size_t>(engine.head().peer)]->engine(unit);
  const bool meets = other.waits_for_partner() && other.head().peer == engine.element_id();
  return meets ? &other : nullptr;
}

void check_match(const Command& send, const Command& receive, Index from) {
  const View& sent = send.walk.view[0];
  const View& got = receive.walk.view[0];
  if (sent.dtype != got.dtype)
    fail("receives ", name_of(got.dtype), ", PE ", from, " sends ", name_of(sent.dtype));
  bool same = send.walk.loops == receive.walk.loops;
  for (int i = 0; same && i < send.walk.loops; ++i)
    same = send.walk.loop[i].extent == receive.walk.loop[i].extent;
  if (!same) fail("receives another box than PE ", from, " sends");
}

void exchange_values(const Command& send, const Command& receive) {
  LocalMemory& source = send.element->memory();
  LocalMemory& target = receive.element->memory();
  const Dtype dtype = send.walk.view[0].dtype;
  const int size = size_of(dtype);
  check_written(send.walk, 0, source);
  if (receive.reductions) check_written(receive.walk, 0, target);
  std::vector<std::byte> values;
  values.reserve(static_cast<std::size_t>(send.walk.elements() * size));
  const Index none[kOperands] = {};
  const std::byte* from = data_of(send.walk, 0, source);
  for_positions(send.walk, 0, send.walk.loops, none, [&](const Index(&at)[kOperands]) {
    values.insert(values.end(), from + at[0] * size, from + (at[0] + 1) * size);
  });
  std::byte* to = data_of(receive.walk, 0, target);
  const std::byte* value = values.data();
  for_positions(receive.walk, 0, receive.walk.loops, none, [&](const Index(&at)[kOperands]) {
    if (receive.reductions) {
      reduction_value(receive.reduction, dtype, to + at[0] * size, value);
    } else {
      std::copy(value, value + size, to + at[0] * size);
    }
    value += size;
  });
  mark_written(receive.walk, 0, target);
}

// Cycles for `elements` of a tile to pass: the link's, and the reduction's where they reduce.
Ticks pace(const Command& receive, Index elements, Index bytes, const Spec& spec) {
  Ticks length = ticks_for(static_cast<double>(bytes), spec.mesh.bytes_per_cycle);
  if (!receive.reductions) return length;
  const auto dtype = static_cast<std::size_t>(receive.walk.view[0].dtype);
  return std::max(length, ticks_for(static_cast<double>(elements), spec.reduction.lanes[dtype]));
}

}  // namespace

// A send and its receive meet at the heads of their queues; then the tile crosses the mesh in
// pieces. The sender's slot is free when the last piece has left, the receiver's holds the tile
// when it has come (and been reduced).
Process mesh_out(Engine& engine) {
  Chip& chip = engine.chip();
  const Spec& spec = chip.spec;
  const auto from = static_cast<int>(engine.element_id());
  while (true) {
    Command& send = co_await engine.ready();
    Engine* other = partner_of(engine, Unit::mesh_in);
    if (other == nullptr) {
      co_await engine.partner();
      other = &chip.elements[static_cast<std::size_t>(send.peer)]->engine(Unit::mesh_in);
    }
    Command& receive = *other->head_command();
    engine.begin(send);
    other->begin(receive);
    receive.element->at_command(receive, [&] {
      check_match(send, receive, from);
      if (receive.reductions && spec.reduction.lanes[static_cast<std::size_t>(
                               receive.walk.view[0].dtype)] <= 0)
        fail("the reduction engine does not take ", name_of(receive.walk.view[0].dtype));
      if (chip.options.functional) exchange_values(send, receive);
    });
    const Index size = size_of(send.walk.view[0].dtype);
    const Index piece = std::max<Index>(spec.dma.chunk_bytes / size, 1);
    Time arrival = chip.events.now();
    Ticks end = ticks(chip.events.now());
    for (Index left = send.walk.elements(); left > 0; left -= piece) {
      const Index elements = std::min(left, piece);
      arrival = chip.mesh.send(chip.events.now(), from, static_cast<int>(send.peer),
                               elements * size, Mesh::End::element);
      end += pace(receive, elements, elements * size, spec);
      co_await Until{chip.events, cycles(end)};
    }
    const Time now = chip.events.now();
    const Time reduced = receive.reductions ? spec.reduction.startup_cycles : 0;
    send.occupied = receive.occupied = now - send.started;
    engine.retire(send.occupied);
    other->retire(send.occupied);
    other->meet();
    chip.events.at(now, Element::completion(send));
    chip.events.at(std::max(now, arrival) + reduced, Element::completion(receive));
  }
}

Process mesh_in(Engine& engine) {
  while (true) {
    co_await engine.ready();
    Engine* other = partner_of(engine, Unit::mesh_out);
    // The sender does the work for both; wake it only once this engine can be met.
    if (other != nullptr) other->meet();
    co_await engine.partner();
  }
}

}  // namespace sim
