#include "backends/sim/native/tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>

#include "backends/sim/native/angle.h"
#include "backends/sim/native/error.h"

namespace sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kQuarterPi = std::numbers::pi / 4;

// 2^exponent * x, for normal results.
double scale(double x, int exponent) {
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace

template <class F>
void Tables::Pieces::build(double end, int intervals, F f) {
  scale = intervals / end;
  coefficients.clear();
  const double half = 0.5 / scale;
  for (int i = 0; i < intervals; ++i) {
    const double middle = (i + 0.5) / scale;
    // The cubic through four Chebyshev points of the interval.
    constexpr double kNear = 0.38268343236508977, kFar = 0.92387953251128674;
    const double p = kNear * half, q = kFar * half;
    const double even_p = (f(middle + p) + f(middle - p)) / 2;
    const double even_q = (f(middle + q) + f(middle - q)) / 2;
    const double odd_p = (f(middle + p) - f(middle - p)) / (2 * p);
    const double odd_q = (f(middle + q) - f(middle - q)) / (2 * q);
    const double c2 = (even_q - even_p) / (q * q - p * p);
    const double c3 = (odd_q - odd_p) / (q * q - p * p);
    coefficients.insert(coefficients.end(),
                        {even_p - c2 * p * p, odd_p - c3 * p * p, c2, c3});
  }
}

double Tables::Pieces::operator()(double x) const {
  const double position = x * scale;
  const auto i = static_cast<std::size_t>(position);
  const double h = (position - (static_cast<double>(i) + 0.5)) / scale;
  const double* c = &coefficients[4 * i];
  return c[0] + h * (c[1] + h * (c[2] + h * c[3]));
}

Tables::Tables(int bits) : bits_(bits) {
  const int size = 1 << bits;
  for (int i = 0; i < size; ++i) exp2_.push_back(std::exp2(static_cast<double>(i) / size));
  for (int i = 0; i <= size; ++i) {  // c runs over [1, 2], both ends exact
    const double c = 1 + static_cast<double>(i) / size;
    inverse_.push_back(1 / c);
    log_.push_back(std::log(c));
    root_.push_back(std::sqrt(c));
    sin_.push_back(std::sin(i * kQuarterPi / size));
    cos_.push_back(std::cos(i * kQuarterPi / size));
  }
  for (int i = 0; i <= size; ++i) root_.push_back(std::sqrt(2 * inverse_[0] + 2.0 * i / size));
  const auto ratio = [](auto f) {
    return [f](double x) { return x == 0 ? f(1e-9) / 1e-9 : f(x) / x; };
  };
  tanh_pieces_.build(1, size, ratio([](double x) { return std::tanh(x); }));
  erf_pieces_.build(1, size, ratio([](double x) { return std::erf(x); }));
  atan_pieces_.build(1 + 1.0 / size, size + 1, ratio([](double x) { return std::atan(x); }));
  erfc_pieces_.build(kErfcEnd, static_cast<int>(kErfcEnd) * size, [](double x) {
    const auto wide = static_cast<long double>(x);
    return static_cast<double>(std::exp(wide * wide) * std::erfc(wide));
  });
}

Tables::Reduced Tables::reduce(double x) const {
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  const auto pattern = std::bit_cast<std::uint64_t>(x);
  const int exponent = static_cast<int>(pattern >> 52) - 1023;
  const auto m = std::bit_cast<double>((pattern & kFraction) | (std::uint64_t{1023} << 52));
  const double size = static_cast<double>(1 << bits_);
  const auto entry = static_cast<std::size_t>((m - 1) * size + 0.5);
  const double c = 1 + static_cast<double>(entry) / size;
  return {exponent, entry, (m - c) * inverse_[entry]};
}

double Tables::exp_reduced(double x) const {
  const double size = static_cast<double>(1 << bits_);
  const double steps = std::nearbyint(x * (size * std::numbers::log2e));
  // ln 2 in two parts, so that the product with a whole number of steps is exact.
  const double r = x - steps * (0x1.62e42fefa38p-1 / size) - steps * (0x1.ef35793c7673p-45 / size);
  const auto whole = static_cast<std::int64_t>(steps);
  const auto entry = static_cast<std::size_t>(whole & ((std::int64_t{1} << bits_) - 1));
  const double near = 1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24))));
  return scale(exp2_[entry] * near, static_cast<int>(whole >> bits_));
}

double Tables::exp(double x) const {
  if (x > 700) return kInfinity;
  if (x < -700) return 0;
  return x == x ? exp_reduced(x) : x;
}

double Tables::log(double x) const {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNan;
  if (x == kInfinity) return x;
  const Reduced part = reduce(x);
  double r = part.r;
  double near = log_[part.entry];
  int exponent = part.exponent;
  if (near > 0.5) {  // count down from the next power of two, so that log is exact near 1
    near -= std::numbers::ln2;
    ++exponent;
    if (part.entry == log_.size() - 1) near = 0;
  }
  const double tail =
      r * (1 - r * (0.5 - r * (1.0 / 3 - r * (0.25 - r * (0.2 - r * (1.0 / 6))))));
  return exponent * std::numbers::ln2 + (near + tail);
}

double Tables::sqrt(double x) const {
  if (!(x > 0) || x == kInfinity) return x == 0 || x == kInfinity ? x : kNan;
  const Reduced part = reduce(x);
  const bool odd = part.exponent & 1;
  const double root = root_[part.entry + (odd ? inverse_.size() : 0)];
  const double r = part.r;
  const double near = 1 + r * (0.5 - r * (0.125 - r * (0.0625 - r * (5.0 / 128))));
  return scale(root * near, (part.exponent - odd) / 2);
}

double Tables::rsqrt(double x) const {
  if (x == 0) return std::signbit(x) ? -kInfinity : kInfinity;
  if (!(x > 0)) return kNan;
  if (x == kInfinity) return 0;
  const Reduced part = reduce(x);
  const bool odd = part.exponent & 1;
  const double root = root_[part.entry + (odd ? inverse_.size() : 0)];
  const double r = part.r;
  const double near = 1 - r * (0.5 - r * (0.375 - r * (0.3125 - r * (35.0 / 128))));
  // 1 / sqrt c = sqrt c / c
  const double inverse = root * inverse_[part.entry] * (odd ? 0.5 : 1);
  return scale(inverse * near, -(part.exponent - odd) / 2);
}

double Tables::recip(double x) const {
  if (x == 0) return std::copysign(kInfinity, x);
  if (std::isinf(x)) return std::copysign(0.0, x);
  if (x != x) return x;
  const Reduced part = reduce(std::fabs(x));
  const double r = part.r;
  const double near = 1 - r * (1 - r * (1 - r * (1 - r)));
  return std::copysign(scale(inverse_[part.entry] * near, -part.exponent), x);
}

double Tables::sigmoid(double x) const {
  if (x != x) return x;
  const double e = exp(-std::fabs(x));
  return x < 0 ? e * recip(1 + e) : recip(1 + e);
}

double Tables::silu(double x) const {
  return x == -kInfinity ? -0.0 : x * sigmoid(x);
}

double Tables::tanh(double x) const {
  const double size = std::fabs(x);
  if (size < 1) return x * tanh_pieces_(size);
  if (x != x) return x;
  return std::copysign(1 - 2 * recip(exp(2 * size) + 1), x);
}

double Tables::scaled_erfc(double x) const { return erfc_pieces_(x); }

double Tables::erf(double x) const {
  const double size = std::fabs(x);
  if (size < 1) return x * erf_pieces_(size);
  if (x != x) return x;
  if (size > 6) return std::copysign(1.0, x);
  return std::copysign(1 - exp(-size * size) * scaled_erfc(size), x);
}

double Tables::gelu(double x) const {
  if (x != x) return x;
  const double z = std::fabs(x) * (std::numbers::sqrt2 / 2);
  if (z < 1) return 0.5 * x * (1 + std::copysign(z * erf_pieces_(z), x));
  const double tail = z < kErfcEnd ? 0.5 * exp(-z * z) * scaled_erfc(z) : 0;
  if (x == -kInfinity) return -0.0;
  return x < 0 ? x * tail : x - (tail == 0 ? 0 : x * tail);
}

double Tables::sine(double angle, int quarter) const {
  const bool swapped = quarter & 1;
  const double size = static_cast<double>(1 << bits_);
  const double magnitude = std::fabs(angle);
  const auto entry = static_cast<std::size_t>(
      std::min(std::nearbyint(magnitude * (size / kQuarterPi)), size));
  const double h = magnitude - static_cast<double>(entry) * (kQuarterPi / size);
  const double sin_h = h * (1 - h * h * (1.0 / 6));
  const double cos_h = 1 - h * h * (0.5 - h * h * (1.0 / 24));
  const double value = swapped ? cos_[entry] * cos_h - sin_[entry] * sin_h
                               : sin_[entry] * cos_h + cos_[entry] * sin_h;
  const double transposed = quarter & 2 ? -value : value;
  return swapped || angle >= 0 ? transposed : -transposed;
}

double Tables::sin(float x) const {
  if (!std::isfinite(x)) return kNan;
  if (x == 0) return x;
  const Angle angle = reduce_angle(x);
  return sine(angle.rest, angle.quarter);
}

double Tables::cos(float x) const {
  if (!std::isfinite(x)) return kNan;
  const Angle angle = reduce_angle(x);
  return sine(angle.rest, angle.quarter + 1);
}

double Tables::pow(double x, double y) const {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return kNan;
  const bool whole = std::floor(y) == y;
  const bool odd = whole && std::fabs(y) < 0x1p53 && std::fmod(y, 2) != 0;
  const double size = std::fabs(x);
  if (x < 0 && !whole && std::isfinite(x)) return kNan;
  double result;
  if (std::isinf(y)) {
    result = size == 1 ? 1 : (size > 1) == (y > 0) ? kInfinity : 0;
  } else if (size == 0 || size == kInfinity) {
    result = (size == 0) == (y < 0) ? kInfinity : 0;
  } else {
    result = exp(y * log(size));
  }
  return std::signbit(x) && odd ? -result : result;
}

void Tables::apply(device::Op op, device::Index n, const float* a, const float* b,
                   float* out) const {
  const auto each = [&](auto f) {
    for (device::Index i = 0; i < n; ++i) out[i] = static_cast<float>(f(i));
  };
  using device::Op;
  switch (op) {
    case Op::exp: return each([&](auto i) { return exp(a[i]); });
    case Op::log: return each([&](auto i) { return log(a[i]); });
    case Op::sqrt: return each([&](auto i) { return sqrt(a[i]); });
    case Op::rsqrt: return each([&](auto i) { return rsqrt(a[i]); });
    case Op::recip: return each([&](auto i) { return recip(a[i]); });
    case Op::tanh: return each([&](auto i) { return tanh(a[i]); });
    case Op::sigmoid: return each([&](auto i) { return sigmoid(a[i]); });
    case Op::erf: return each([&](auto i) { return erf(a[i]); });
    case Op::sin: return each([&](auto i) { return sin(a[i]); });
    case Op::cos: return each([&](auto i) { return cos(a[i]); });
    case Op::pow: return each([&](auto i) { return pow(a[i], b[i]); });
    case Op::silu: return each([&](auto i) { return silu(a[i]); });
    case Op::gelu: return each([&](auto i) { return gelu(a[i]); });
    case Op::exp2: return each([&](auto i) { return exp2(a[i]); });
    case Op::expm1: return each([&](auto i) { return expm1(a[i]); });
    case Op::log2: return each([&](auto i) { return log2(a[i]); });
    case Op::log10: return each([&](auto i) { return log10(a[i]); });
    case Op::log1p: return each([&](auto i) { return log1p(a[i]); });
    case Op::erfc: return each([&](auto i) { return erfc(a[i]); });
    case Op::tan: return each([&](auto i) { return tan(a[i]); });
    case Op::asin: return each([&](auto i) { return asin(a[i]); });
    case Op::acos: return each([&](auto i) { return acos(a[i]); });
    case Op::atan: return each([&](auto i) { return atan(a[i]); });
    case Op::atan2: return each([&](auto i) { return atan2(a[i], b[i]); });
    case Op::sinh: return each([&](auto i) { return sinh(a[i]); });
    case Op::cosh: return each([&](auto i) { return cosh(a[i]); });
    case Op::asinh: return each([&](auto i) { return asinh(a[i]); });
    case Op::acosh: return each([&](auto i) { return acosh(a[i]); });
    case Op::atanh: return each([&](auto i) { return atanh(a[i]); });
    default: fail("is no operation of the special-function unit");
  }
}

const Tables& tables_of(int bits) {
  static std::mutex lock;
  static std::map<int, Tables> made;
  const std::lock_guard<std::mutex> held(lock);
  return made.try_emplace(bits, bits).first->second;
}

}  // namespace sim
