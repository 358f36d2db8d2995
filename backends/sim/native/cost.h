// How long a command holds its engine, and how much later its result is there.
#ifndef BACKENDS_SIM_NATIVE_COST_H_
#define BACKENDS_SIM_NATIVE_COST_H_

#include "backends/sim/native/command.h"
#include "backends/sim/native/spec.h"

namespace sim {

// Which loops of a matrix product are which.
struct Product {
  Index batch = 1;
  Index m = 1;  // in the result and the first factor
  Index n = 1;  // in the result and the second factor
  Index k = 1;  // in both factors: summed over
};
// Throws SimulationError for an axis that is in one tile only.
Product product_of(const Walk& walk);

// Cycles between the starts of two independent commands of one engine; at least 1. Throws
// SimulationError if the engine does not take a dtype of the command.
Time occupancy(const Command& command, const Spec& spec);
// Cycles from the end of that to the result: the depth of the pipeline.
Time startup(const Command& command, const Spec& spec);
// Bytes that the command moves to and from local memory.
Index local_bytes(const Command& command);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_COST_H_
