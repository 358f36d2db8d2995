// A run: launches of kernels on one chip, one after another.
#ifndef BACKENDS_SIM_NATIVE_SIMULATION_H_
#define BACKENDS_SIM_NATIVE_SIMULATION_H_

#include <string>
#include <vector>

#include "backends/sim/native/counters.h"
#include "backends/sim/native/options.h"
#include "backends/sim/native/programs.h"
#include "backends/sim/native/spec.h"
#include "backends/sim/native/tensor.h"

namespace sim {

struct Result {
  Time cycles = 0;  // from the start of the first launch to the end of the last
  std::vector<Time> launch_cycles;
  double microseconds = 0;
  std::vector<Counters> elements;
  Index dram_read_bytes = 0;
  Index dram_write_bytes = 0;
  Index shared_read_bytes = 0;
  Index shared_write_bytes = 0;
  Index mesh_bytes = 0;     // summed over links
  Index local_bytes = 0;  // moved by the compute engines
  double dram_busy = 0;     // cycles, summed over channels
  double shared_busy = 0;   // cycles, summed over banks
  double mesh_busiest = 0;  // cycles, of the busiest link
  std::int64_t events = 0;
};

// Runs the launches, whose commands come from `programs`. Global memory is cold at first: all tensors lie in DRAM; what a launch left
// in shared memory stays there for the next. Writes a timeline to `trace` unless it is empty.
// Throws SimulationError, SpecError, and what `programs` throws.
Result simulate(const Spec& spec, const Options& options, Programs& programs,
                const std::vector<LaunchCall>& launches, std::vector<TensorInfo> tensors,
                const std::string& trace);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_SIMULATION_H_
