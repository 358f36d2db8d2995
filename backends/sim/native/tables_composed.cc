// Functions that the special-function unit composes of those it has tables for.
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/sim/native/tables.h"

namespace sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfPi = std::numbers::pi / 2;

}  // namespace

double Tables::exp2(double x) const { return exp(x * std::numbers::ln2); }

double Tables::log2(double x) const { return log(x) * std::numbers::log2e; }

double Tables::log10(double x) const { return log(x) * std::numbers::log10e; }

// Near 0 by tanh(x / 2) = (e^x - 1) / (e^x + 1), which cancels nothing.
double Tables::expm1(double x) const {
  if (!(std::fabs(x) < 1)) return exp(x) - 1;
  const double t = tanh(x / 2);
  return 2 * t / (1 - t);
}

// What 1 + x rounds away is made up for to the first order.
double Tables::log1p(double x) const {
  const double sum = 1 + x;
  if (x == 0 || !(sum > 0) || sum == kInfinity) return x == 0 ? x : log(sum);
  return log(sum) + (x - (sum - 1)) / sum;
}

double Tables::erfc(double x) const {
  if (x != x) return x;
  if (x < 1) return 1 - erf(x);
  return x < kErfcEnd ? exp(-x * x) * scaled_erfc(x) : 0;
}

double Tables::tan(float x) const { return x == 0 ? x : sin(x) / cos(x); }

double Tables::atan_ratio(double x) const { return atan_pieces_(x); }

double Tables::atan(double x) const {
  if (x != x) return x;
  const double size = std::fabs(x);
  if (size <= 1) return x * atan_ratio(size);
  return std::copysign(kHalfPi - atan_ratio(1 / size) / size, x);
}

double Tables::atan2(double y, double x) const {
  if (x != x || y != y) return kNan;
  const double up = std::fabs(y), along = std::fabs(x);
  double angle;
  if (std::isinf(up) && std::isinf(along)) {
    angle = kHalfPi / 2;
  } else if (up == 0) {
    angle = 0;
  } else if (along == 0) {
    angle = kHalfPi;
  } else {
    angle = up < along ? atan(up / along) : kHalfPi - atan(along / up);
  }
  return std::copysign(std::signbit(x) ? std::numbers::pi - angle : angle, y);
}

double Tables::asin(double x) const {
  if (!(std::fabs(x) <= 1)) return kNan;
  return x == 0 ? x : atan2(x, sqrt((1 - x) * (1 + x)));
}

double Tables::acos(double x) const {
  if (!(std::fabs(x) <= 1)) return kNan;
  return atan2(sqrt((1 - x) * (1 + x)), x);
}

double Tables::sinh(double x) const {
  if (x == 0) return x;
  const double e = expm1(std::fabs(x));
  return std::copysign(e == kInfinity ? e : (e + e / (1 + e)) / 2, x);
}

double Tables::cosh(double x) const {
  const double e = exp(std::fabs(x));
  return (e + 1 / e) / 2;
}

double Tables::asinh(double x) const {
  if (x == 0 || !std::isfinite(x)) return x;
  const double size = std::fabs(x), square = size * size;
  return std::copysign(log1p(size + square / (1 + sqrt(1 + square))), x);
}

double Tables::acosh(double x) const {
  if (!(x >= 1)) return kNan;
  return log1p((x - 1) + sqrt((x - 1) * (x + 1)));
}

double Tables::atanh(double x) const {
  if (x == 0) return x;
  if (!(std::fabs(x) <= 1)) return kNan;
  const double size = std::fabs(x);
  return std::copysign(size == 1 ? kInfinity : 0.5 * log1p(2 * size / (1 - size)), x);
}

}  // namespace sim
