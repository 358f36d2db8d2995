// Why nothing happens any more.
#ifndef BACKENDS_SIM_NATIVE_DEADLOCK_H_
#define BACKENDS_SIM_NATIVE_DEADLOCK_H_

#include <string>

#include "backends/sim/native/chip.h"

namespace sim {

// Nothing is left to happen. Throws SimulationError, which says who waits for what, unless all
// programs have ended and all commands are complete.
void check_ended(const Chip& chip);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_DEADLOCK_H_
