// The processes of the DMA engines.
#include <vector>

#include "backends/sim/native/chip.h"
#include "backends/sim/native/element.h"
#include "backends/sim/native/engine.h"
#include "backends/sim/native/execute.h"

namespace sim {
namespace {

// How long the engine's port is taken by one request.
Ticks port_time(const Chunk& chunk, const DmaSpec& spec) {
  return std::max(ticks_for(static_cast<double>(chunk.bytes), spec.bytes_per_cycle),
                  ticks_for(static_cast<double>(chunk.runs) * spec.row_cycles, 1));
}

void check_rows_written(const Transfer& transfer, LocalMemory& memory) {
  for (int d = 0; d < transfer.tensor->rank; ++d) {
    const Dimension& dimension = transfer.dimension[d];
    if (!dimension.indirect) continue;
    check_written(dimension.rows, 0, memory);
  }
}

// Reads the positions that other tiles hold, and moves the values.
void transfer_values(Chip& chip, const Command& command, Positions& positions) {
  Element& element = *command.element;
  element.at_command(command, [&] {
    LocalMemory& memory = element.memory();
    const bool functional = chip.options.functional;
    const Transfer& transfer = command.transfer;
    if (functional) check_rows_written(transfer, memory);
    find_positions(transfer, functional ? &memory : nullptr, positions);
    if (!functional) return;
    const bool in = command.unit == Unit::dma_in;
    if (!in) check_written(command.walk, 0, memory);
    move(transfer, positions, in ? Move::load : command.kind == Kind::add ? Move::add : Move::store,
         data_of(command.walk, 0, memory), chip.races, element.id());
    if (in) mark_written(command.walk, 0, memory);
  });
}

}  // namespace

namespace {

// Starts the commands at the heads of the engines, which want the same bytes; gives who is to
// get them.
Delivery* begin_load(Chip& chip, const std::vector<Engine*>& engines, Positions& positions) {
  Delivery* delivery = chip.memory.open();
  for (Engine* engine : engines) {
    Command& command = *engine->head_command();
    engine->begin(command);
    transfer_values(chip, command, positions);
    delivery->receivers.push_back(
        {static_cast<int>(engine->element_id()), Element::completion(command), 0});
  }
  return delivery;
}

void end_load(const std::vector<Engine*>& engines, const Engine& leader, Time busy) {
  for (Engine* engine : engines) {
    engine->head_command()->occupied = busy;
    engine->retire(busy);
    if (engine != &leader) engine->meet();
  }
}

}  // namespace

// Requests leave one after another, each when the port is free; the replies come when they come,
// so commands overlap in memory. `startup` is latency, not occupancy. The members of a shared
// load wait for the last of them, which makes the requests for all.
Process dma_in(Engine& engine) {
  Chip& chip = engine.chip();
  const Spec& spec = chip.spec;
  const auto node = static_cast<int>(engine.element_id());
  Pipe port;
  Positions positions;
  std::vector<Chunk> chunks;
  while (true) {
    Command& command = co_await engine.ready();
    std::vector<Engine*> members{&engine};
    if (command.kind == Kind::load_shared) {
      const Meeting* meeting = nullptr;
      engine.element().at_command(command, [&] {
        meeting = &chip.groups.arrive(engine, command, engine.element_id());
      });
      if (!meeting->complete()) {
        co_await engine.partner();
        continue;
      }
      members = meeting->members;
      chip.groups.dissolve(command, engine.element_id());
    }
    const Time began = chip.events.now();
    Delivery* delivery = begin_load(chip, members, positions);
    find_chunks(command.transfer, positions, spec, chunks);
    for (const Chunk& chunk : chunks) {
      chip.memory.read(chip.events.now() + spec.dma.startup_cycles, node, chunk, delivery);
      co_await Until{chip.events,
                     cycles(port.reserve(ticks(chip.events.now()), port_time(chunk, spec.dma)))};
    }
    end_load(members, engine, chip.events.now() - began);
    chip.memory.close(delivery, chip.events.now() + spec.dma.startup_cycles);
  }
}

Process dma_out(Engine& engine) {
  Chip& chip = engine.chip();
  const Spec& spec = chip.spec;
  const auto node = static_cast<int>(engine.element_id());
  Pipe port;
  Positions positions;
  std::vector<Chunk> chunks;
  while (true) {
    Command& command = co_await engine.ready();
    engine.begin(command);
    transfer_values(chip, command, positions);
    Delivery* delivery = chip.memory.open();
    delivery->receivers.push_back({node, Element::completion(command), 0});
    find_chunks(command.transfer, positions, spec, chunks);
    for (const Chunk& chunk : chunks) {
      chip.memory.write(chip.events.now() + spec.dma.startup_cycles, node, chunk, delivery,
                        command.kind == Kind::add);
      co_await Until{chip.events,
                     cycles(port.reserve(ticks(chip.events.now()), port_time(chunk, spec.dma)))};
    }
    command.occupied = chip.events.now() - command.started;
    engine.retire(command.occupied);
    chip.memory.close(delivery, chip.events.now() + spec.dma.startup_cycles);
  }
}

}  // namespace sim
