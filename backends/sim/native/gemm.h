// Dense matrix products on the host.
#ifndef BACKENDS_SIM_NATIVE_GEMM_H_
#define BACKENDS_SIM_NATIVE_GEMM_H_

#include <cstdint>
#include <vector>

#include "backends/sim/native/device/device.h"

namespace sim {

// c[m][n] += a[m][k] * b[k][n], row-major. The order of the additions depends on k alone, so
// equal inputs give equal bits on every machine. Integers wrap.
void gemm(device::Index m, device::Index n, device::Index k, const float* a, const float* b,
          float* c);
void gemm(device::Index m, device::Index n, device::Index k, const std::int32_t* a,
          const std::int32_t* b, std::int32_t* c);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_GEMM_H_
