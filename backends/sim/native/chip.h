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

// Commands come from here and go back when they are complete.
class CommandPool {
 public:
  Command* take() {
    if (free_.empty()) {
      all_.emplace_back();
      free_.push_back(&all_.back());
    }
    Command* command = free_.back();
    free_.pop_back();
    command->reset();
    return command;
  }
  void give_back(Command* command) { free_.push_back(command); }

 private:
  std::deque<Command> all_;
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
