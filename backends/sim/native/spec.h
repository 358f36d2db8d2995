// The machine's sizes, rates and latencies. Read once, never changed.
#ifndef BACKENDS_SIM_NATIVE_SPEC_H_
#define BACKENDS_SIM_NATIVE_SPEC_H_

#include <array>
#include <cstdint>
#include <string>

#include "backends/sim/native/device/device.h"

namespace sim {

using device::Dtype;
using device::Index;
using Time = std::int64_t;  // cycles of the one clock

inline constexpr int kDtypes = 9;
// A rate for each dtype; 0 where the unit does not take it.
using Rates = std::array<double, kDtypes>;

struct DmaSpec {
  double bytes_per_cycle = 0;  // per processing element and direction
  Time startup_cycles = 0;
  Index chunk_bytes = 0;  // what one request moves at most
  double row_cycles = 0;  // per contiguous run of a region
};

struct DramSpec {
  Index channels = 0;
  double bytes_per_cycle = 0;  // per channel
  Time latency_cycles = 0;
  Index interleave_bytes = 0;
};

struct SharedSpec {
  Index bytes = 0;
  Index banks = 0;
  double bytes_per_cycle = 0;  // per bank
  Time latency_cycles = 0;
  Index block_bytes = 0;
};

struct MeshSpec {
  double bytes_per_cycle = 0;  // per link and direction
  Time hop_cycles = 0;
};

struct MatrixSpec {
  Index rows = 0;
  Index columns = 0;
  Time startup_cycles = 0;
  Rates depth_per_cycle{};  // steps of the summed axes a cycle
};

struct LanesSpec {
  Time startup_cycles = 0;
  Rates lanes{};  // elements a cycle
};

struct Spec {
  double clock_hz = 0;
  Index rows = 0;
  Index columns = 0;
  Time launch_cycles = 0;
  Time issue_cycles = 0;
  Index queue_length = 0;
  Index local_bytes = 0;
  DmaSpec dma;
  DramSpec dram;
  SharedSpec shared;
  MeshSpec mesh;
  MatrixSpec matrix;
  LanesSpec vector;
  LanesSpec special;
  Index table_bits = 0;  // a look-up table of the special-function unit has 2^table_bits entries
  LanesSpec reduction;
};

// Throws SpecError for figures that do not fit together; single figures are checked on reading.
void check(const Spec& spec);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_SPEC_H_
