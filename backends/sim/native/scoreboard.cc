#include "backends/sim/native/scoreboard.h"

#include <cassert>
#include <utility>

namespace sim {

void Scoreboard::enter_read(Hazards& hazards, std::uint32_t slot) {
  assert(hazards.size < Hazards::kMost && "a command uses more slots than a Hazards holds");
  State& state = slots_[slot];
  hazards.use[hazards.size++] = {slot, state.writes_entered, 0, false};
  ++state.reads_entered;
}

void Scoreboard::enter_write(Hazards& hazards, std::uint32_t slot, int engine) {
  assert(hazards.size < Hazards::kMost && "a command uses more slots than a Hazards holds");
  State& state = slots_[slot];
  if (state.writer != engine) state.before_writer = state.writes_entered;
  state.writer = engine;
  std::uint32_t own_reads = 0;
  for (int i = 0; i < hazards.size; ++i)
    if (hazards.use[i].slot == slot && !hazards.use[i].write) ++own_reads;
  hazards.use[hazards.size++] = {slot, state.before_writer, state.reads_entered - own_reads,
                                 true};
  ++state.writes_entered;
}

std::int64_t Scoreboard::blocking(const Hazards& hazards) const {
  for (int i = 0; i < hazards.size; ++i) {
    const Hazards::Use& use = hazards.use[i];
    const State& state = slots_[use.slot];
    // Differences, so that the counters may wrap.
    if (static_cast<std::int32_t>(state.writes_done - use.writes) < 0) return use.slot;
    if (use.write && static_cast<std::int32_t>(state.reads_done - use.reads) < 0) return use.slot;
  }
  return -1;
}

std::uint32_t Scoreboard::release(const Hazards& hazards) {
  std::uint32_t watchers = 0;
  for (int i = 0; i < hazards.size; ++i) {
    State& state = slots_[hazards.use[i].slot];
    ++(hazards.use[i].write ? state.writes_done : state.reads_done);
    watchers |= std::exchange(state.watchers, 0u);
  }
  return watchers;
}

std::uint32_t Scoreboard::pending_reads(std::uint32_t slot) const {
  return slots_[slot].reads_entered - slots_[slot].reads_done;
}

std::uint32_t Scoreboard::pending_writes(std::uint32_t slot) const {
  return slots_[slot].writes_entered - slots_[slot].writes_done;
}

}  // namespace sim
