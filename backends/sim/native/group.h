// Who has come to which shared load.
#ifndef BACKENDS_SIM_NATIVE_GROUP_H_
#define BACKENDS_SIM_NATIVE_GROUP_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "backends/sim/native/command.h"

namespace sim {

class Engine;

// One shared load: the engines whose commands stand at their heads for it.
struct Meeting {
  Index size = 0;
  std::vector<Engine*> members;
  bool complete() const { return static_cast<Index>(members.size()) == size; }
};

class GroupTable {
 public:
  // The command at the engine's head is the element's next load of its group. Throws
  // SimulationError if the members disagree on the size or the region, or are too many.
  Meeting& arrive(Engine& engine, const Command& command, Index element);
  // Everyone has what they came for.
  void dissolve(const Command& command, Index element);

  // The meeting that this element waits in.
  const Meeting* find(const Command& command, Index element) const;
  void clear() { groups_.clear(); }

 private:
  struct Group {
    Index size = 0;
    std::unordered_map<Index, std::uint64_t> calls;  // per element
    std::map<std::uint64_t, Meeting> meetings;       // by number of call
    std::uint64_t over = 0;                          // how many calls are over
  };
  std::unordered_map<Index, Group> groups_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_GROUP_H_
