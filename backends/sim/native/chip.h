// What the processing elements of a chip share while a run lasts.
#ifndef BACKENDS_SIM_NATIVE_CHIP_H_
#define BACKENDS_SIM_NATIVE_CHIP_H_

#include <deque>
#include <memory>
#include <vector>

#include "backends/sim/native/barrier.h"
#include "backends/sim/native/command.h"
#include "backends/sim/native/events.h"
#include "backends/sim/native/group.h"
#include "backends/sim/native/memory.h"
#include "backends/sim/native/mesh.h"
#include "backends/sim/native/options.h"
#include "backends/sim/native/programs.h"
#include "backends/sim/native/races.h"
#include "backends/sim/native/spec.h"
#include "backends/sim/native/tables.h"
#include "backends/sim/native/trace.h"

namespace sim {

// Commands come from here and go back when they are complete. A thread keeps some for its next simulation:
// they are large, and to make them takes as long as a short simulation.
class CommandPool {
 public:
  CommandPool() = default;
  CommandPool(const CommandPool&) = delete;
  ~CommandPool() {
    if (kept().size() > kMostKept) kept().resize(kMostKept);
  }

  Command* take() {
    if (free_.empty()) {
      if (used_ == kept().size()) kept().emplace_back();
      free_.push_back(&kept()[used_++]);
    }
    Command* command = free_.back();
    free_.pop_back();
    command->reset();
    return command;
  }
  void give_back(Command* command) { free_.push_back(command); }

 private:
  static constexpr std::size_t kMostKept = 512;

  static std::deque<Command>& kept() {
    thread_local std::deque<Command> all;
    return all;
  }

  std::size_t used_ = 0;  // of those that are kept, the first, by this simulation
  std::vector<Command*> free_;
};

struct Chip {
  Chip(const Spec& spec, const Options& options, Index global_bytes, Programs& programs);
  ~Chip();
  Chip(const Chip&) = delete;

  const Spec spec;
  const Options options;
  Programs& programs;
  Events events;
  Mesh mesh;
  Memory memory;
  const Tables& tables;
  CommandPool commands;
  GroupTable groups;
  Barrier barrier;
  Races races;
  std::unique_ptr<Trace> trace;
  std::vector<std::unique_ptr<Element>> elements;
  Time last_done = 0;  // when the last command or program was done
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_CHIP_H_
