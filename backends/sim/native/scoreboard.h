// Who may touch which slot of local memory, and when: the hazards between commands.
#ifndef BACKENDS_SIM_NATIVE_SCOREBOARD_H_
#define BACKENDS_SIM_NATIVE_SCOREBOARD_H_

#include <cstdint>
#include <vector>

namespace sim {

// The slots one command touches, with what must have happened to each before it may start.
struct Hazards {
  struct Use {
    std::uint32_t slot;
    std::uint32_t writes;  // how many writes must be done
    std::uint32_t reads;   // how many reads must be done (a write only)
    bool write;
  };
  static constexpr int kMost = 12;
  int size = 0;
  Use use[kMost];
};

// Commands are entered in program order and may complete in any order. A read waits for the
// writes entered before it. A write waits for the reads entered before it, and for the writes
// that other engines have still to do: an engine keeps its own writes in order, so they pipeline.
class Scoreboard {
 public:
  // `count` more slots.
  void grow(std::uint32_t count) { slots_.resize(slots_.size() + count); }

  // Enters one use; all reads of a command must be entered before its writes.
  void enter_read(Hazards& hazards, std::uint32_t slot);
  void enter_write(Hazards& hazards, std::uint32_t slot, int engine);

  // The first slot that keeps the command from starting, or -1.
  std::int64_t blocking(const Hazards& hazards) const;

  // `engine` wants to be told when the slot changes.
  void watch(std::uint32_t slot, int engine) { slots_[slot].watchers |= 1u << engine; }

  // The command is complete; gives a bit mask of the engines that watched its slots.
  std::uint32_t release(const Hazards& hazards);

  // How many reads and writes of the slot are still to be done.
  std::uint32_t pending_reads(std::uint32_t slot) const;
  std::uint32_t pending_writes(std::uint32_t slot) const;

 private:
  struct State {
    std::uint32_t writes_entered = 0;
    std::uint32_t writes_done = 0;
    std::uint32_t reads_entered = 0;
    std::uint32_t reads_done = 0;
    std::uint32_t before_writer = 0;  // writes entered before the last engine's run of writes
    std::int32_t writer = -1;         // the engine of the last write
    std::uint32_t watchers = 0;
  };
  std::vector<State> slots_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_SCOREBOARD_H_
