#include "backends/sim/native/engine.h"

#include <algorithm>
#include <utility>

#include "backends/sim/native/chip.h"
#include "backends/sim/native/element.h"

namespace sim {

Engine::Engine(Chip& chip, Element& element, Unit unit)
    : chip_(chip), element_(element), unit_(unit),
      queue_(static_cast<std::size_t>(chip.spec.queue_length) + 1) {}

Index Engine::element_id() const { return element_.id(); }
Time Engine::now() const { return chip_.events.now(); }

void Engine::start(Process process) {
  process_ = std::move(process);
  chip_.events.at(now(), process_.handle());
}

bool Engine::push(Command* command) {
  queue_.put(command);
  if (wait_ == Wait::command) poke_at(std::max(now(), command->issued));
  return !queue_.full();
}

void Engine::poke() { poke_at(now()); }

void Engine::poke_at(Time when) {
  chip_.events.at(when, Event{[](void* what) {
                                auto& engine = *static_cast<Engine*>(what);
                                if (!engine.parked_ || engine.wait_ == Wait::partner) return;
                                if (engine.look()) std::exchange(engine.parked_, {}).resume();
                              },
                              this});
}

bool Engine::look() {
  if (queue_.empty()) {
    wait_ = Wait::command;
    return false;
  }
  const Command& command = *queue_.front();
  if (command.issued > now()) {
    if (wait_ != Wait::issue) poke_at(command.issued);
    wait_ = Wait::issue;
    return false;
  }
  const std::int64_t slot = element_.scoreboard().blocking(command.hazards);
  if (slot >= 0) {
    wait_ = Wait::slot;
    blocking_slot_ = static_cast<std::uint32_t>(slot);
    element_.scoreboard().watch(blocking_slot_, static_cast<int>(unit_));
    return false;
  }
  wait_ = Wait::nothing;
  return true;
}

void Engine::meet() {
  wait_ = Wait::nothing;
  chip_.events.at(now(), std::exchange(parked_, {}));
}

void Engine::begin(Command& command) {
  command.started = now();
  counters_.stall += now() - std::max(free_since_, command.issued);
}

void Engine::retire(Time busy) {
  const bool held = queue_.full();  // the control core holds the last one
  queue_.take();
  counters_.busy += busy;
  ++counters_.commands;
  if (held) element_.room(unit_);
}

}  // namespace sim
