// How two values become one.
#ifndef BACKENDS_SIM_NATIVE_FOLD_H_
#define BACKENDS_SIM_NATIVE_FOLD_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backends/sim/native/device/device.h"

namespace sim {

using device::Fold;

// NaN wins against everything.
inline double fold(Fold how, double a, double b) {
  switch (how) {
    case Fold::sum: return a + b;
    case Fold::prod: return a * b;
    case Fold::max: return std::isnan(a) || a > b ? a : b;
    case Fold::min: return std::isnan(a) || a < b ? a : b;
  }
  return a;
}

// Integers wrap.
inline std::int64_t fold(Fold how, std::int64_t a, std::int64_t b) {
  const auto p = static_cast<std::uint64_t>(a);
  const auto q = static_cast<std::uint64_t>(b);
  switch (how) {
    case Fold::sum: return static_cast<std::int64_t>(p + q);
    case Fold::prod: return static_cast<std::int64_t>(p * q);
    case Fold::max: return a > b ? a : b;
    case Fold::min: return a < b ? a : b;
  }
  return a;
}

// What a fold over nothing gives; of the dtype for max and min.
double float_identity(Fold how);
std::int64_t integer_identity(Fold how, device::Dtype dtype);

// into = fold(into, value), both of one dtype, rounded to it.
void fold_value(Fold how, device::Dtype dtype, std::byte* into, const std::byte* value);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_FOLD_H_
