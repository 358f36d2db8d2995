// The operations of a map, on runs of values.
#ifndef BACKENDS_SIM_NATIVE_ARITHMETIC_H_
#define BACKENDS_SIM_NATIVE_ARITHMETIC_H_

#include <cstdint>

#include "backends/sim/native/device/device.h"
#include "backends/sim/native/tables.h"

namespace sim {

using device::Index;
using device::Op;

// out[i] = op(a[i], b[i], c[i]); operands that the operation does not have are not read.
// Integer division by zero throws SimulationError; integers wrap.
void apply(Op op, const Tables& tables, Index n, const float* a, const float* b, const float* c,
           float* out);
void apply(Op op, const Tables& tables, Index n, const std::int64_t* a, const std::int64_t* b,
           const std::int64_t* c, std::int64_t* out);
// Integers to floats: uniform alone.
void apply(Op op, const Tables& tables, Index n, const std::int64_t* a, const std::int64_t* b,
           const std::int64_t* c, float* out);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_ARITHMETIC_H_
