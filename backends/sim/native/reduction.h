// How two values become one.
#ifndef BACKENDS_SIM_NATIVE_REDUCTION_H_
#define BACKENDS_SIM_NATIVE_REDUCTION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backends/sim/native/device/device.h"

namespace sim {

using device::Reduction;

// NaN wins against everything.
inline double reduction(Reduction how, double a, double b) {
  switch (how) {
    case Reduction::sum: return a + b;
    case Reduction::prod: return a * b;
    case Reduction::max: return std::isnan(a) || a > b ? a : b;
    case Reduction::min: return std::isnan(a) || a < b ? a : b;
  }
  return a;
}

// Integers wrap.
inline std::int64_t reduction(Reduction how, std::int64_t a, std::int64_t b) {
  const auto p = static_cast<std::uint64_t>(a);
  const auto q = static_cast<std::uint64_t>(b);
  switch (how) {
    case Reduction::sum: return static_cast<std::int64_t>(p + q);
    case Reduction::prod: return static_cast<std::int64_t>(p * q);
    case Reduction::max: return a > b ? a : b;
    case Reduction::min: return a < b ? a : b;
  }
  return a;
}

// What a reduction over nothing gives; of the dtype for max and min.
double float_identity(Reduction how);
std::int64_t integer_identity(Reduction how, device::Dtype dtype);

// into = reduction(into, value), both of one dtype, rounded to it.
void reduction_value(Reduction how, device::Dtype dtype, std::byte* into, const std::byte* value);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_REDUCTION_H_
