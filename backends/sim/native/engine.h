// An engine of a processing element: a queue of commands and a process that works it off.
#ifndef BACKENDS_SIM_NATIVE_ENGINE_H_
#define BACKENDS_SIM_NATIVE_ENGINE_H_

#include <coroutine>
#include <cstdint>

#include "backends/sim/native/command.h"
#include "backends/sim/native/counters.h"
#include "backends/sim/native/fifo.h"
#include "backends/sim/native/process.h"

namespace sim {

struct Chip;

class Engine {
 public:
  // What the engine waits for.
  enum class Wait { nothing, command, issue, slot, partner };

  Engine(Chip& chip, Element& element, Unit unit);

  Chip& chip() { return chip_; }
  Element& element() { return element_; }
  Index element_id() const;
  Unit unit() const { return unit_; }
  EngineCounters& counters() { return counters_; }
  const EngineCounters& counters() const { return counters_; }

  void start(Process process);
  // The control core hands a command over; false if it must hold it until there is room.
  bool push(Command* command);
  // Looks again, later in this cycle, whether the command at the head may start.
  void poke();

  // For the process. co_await ready(): the command at the head, when its slots are free for it.
  struct Ready {
    Engine& engine;
    bool await_ready() const { return engine.look(); }
    void await_suspend(std::coroutine_handle<> handle) const { engine.parked_ = handle; }
    Command& await_resume() const { return *engine.queue_.front(); }
  };
  Ready ready() {
    free_since_ = now();
    return {*this};
  }
  // co_await partner(): until another processing element calls meet().
  struct Partner {
    Engine& engine;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
      engine.wait_ = Wait::partner;
      engine.parked_ = handle;
    }
    void await_resume() const { engine.wait_ = Wait::nothing; }
  };
  Partner partner() { return {*this}; }
  void meet();
  // The command at the head starts now.
  void begin(Command& command);
  // It has left the engine; `busy` cycles were work.
  void retire(Time busy);

  // What it is doing, for reports.
  bool has_head() const { return !queue_.empty(); }
  const Command& head() const { return *queue_.front(); }
  Command* head_command() { return queue_.front(); }
  std::size_t waiting_commands() const { return queue_.size(); }
  Wait wait() const { return wait_; }
  bool waits_for_partner() const { return wait_ == Wait::partner; }
  std::uint32_t blocking_slot() const { return blocking_slot_; }

 private:
  Time now() const;
  bool look();
  void poke_at(Time when);

  Chip& chip_;
  Element& element_;
  Unit unit_;
  Fifo<Command*> queue_;
  Process process_;
  std::coroutine_handle<> parked_;
  Wait wait_ = Wait::nothing;
  std::uint32_t blocking_slot_ = 0;
  Time free_since_ = 0;
  EngineCounters counters_;
};

// The processes.
Process compute(Engine& engine);   // matrix, vector, special, reduction
Process dma_in(Engine& engine);
Process dma_out(Engine& engine);
Process mesh_out(Engine& engine);
Process mesh_in(Engine& engine);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_ENGINE_H_
