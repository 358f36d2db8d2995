// What a run counts.
#ifndef BACKENDS_SIM_NATIVE_COUNTERS_H_
#define BACKENDS_SIM_NATIVE_COUNTERS_H_

#include <array>
#include <cstdint>

#include "backends/sim/native/command.h"

namespace sim {

struct EngineCounters {
  Time busy = 0;   // cycles in which the engine did work
  Time stall = 0;  // cycles in which a command at its head waited for tiles or for other PEs
  std::int64_t commands = 0;
};

// Of one processing element, over all launches.
struct Counters {
  std::array<EngineCounters, kUnits> engine{};
  Time issue_busy = 0;   // cycles in which the control core issued
  Time issue_stall = 0;  // cycles in which it waited for a queue, a number or a barrier
  Index local_bytes = 0;  // moved to and from local memory by the compute engines
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_COUNTERS_H_
