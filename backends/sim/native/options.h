// How a run is done.
#ifndef BACKENDS_SIM_NATIVE_OPTIONS_H_
#define BACKENDS_SIM_NATIVE_OPTIONS_H_

#include <cstdint>

#include "backends/sim/native/spec.h"

namespace sim {

struct Options {
  bool functional = true;       // move and compute values, not only time
  bool check = true;            // reads of local memory that was never written are errors
  Time max_cycles = 0;          // 0: no limit
  std::int64_t max_events = 0;  // 0: no limit
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_OPTIONS_H_
