#include "backends/sim/native/arithmetic.h"

#include <cmath>

#include "backends/sim/native/error.h"
#include "backends/sim/native/philox.h"

namespace sim {
namespace {

template <class T, class F>
void each(Index n, T* out, F f) {
  for (Index i = 0; i < n; ++i) out[i] = f(i);
}

float modulo(float a, float b) {
  const float rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// As Python does it, so that a == floor_divide(a, b) * b + modulo(a, b) but for rounding.
float floor_divide(float a, float b) {
  if (b == 0) return a / b;
  const float rest = std::fmod(a, b);
  const bool transposed = rest != 0 && (rest < 0) != (b < 0);
  const float quotient = (a - rest) / b - (transposed ? 1.0f : 0.0f);
  const float floor = std::floor(quotient);
  return quotient - floor > 0.5f ? floor + 1 : floor;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("an integer is divided by zero");
  if (b == -1) return static_cast<std::int64_t>(-static_cast<std::uint64_t>(a));
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("an integer is taken modulo zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t truncated_modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("an integer is taken modulo zero");
  return b == -1 ? 0 : a % b;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 && base != 1 && base != -1) return 0;
  std::uint64_t left = exponent < 0 ? -static_cast<std::uint64_t>(exponent)
                                    : static_cast<std::uint64_t>(exponent);
  std::uint64_t result = 1;
  for (auto square = static_cast<std::uint64_t>(base); left != 0; left >>= 1, square *= square)
    if (left & 1) result *= square;
  return static_cast<std::int64_t>(result);
}

// Comparisons, logic and choice: the same for every type.
template <class T>
bool apply_common(Op op, Index n, const T* a, const T* b, const T* c, T* out) {
  switch (op) {
    case Op::copy: each(n, out, [=](Index i) { return a[i]; }); return true;
    case Op::lt: each(n, out, [=](Index i) { return T(a[i] < b[i]); }); return true;
    case Op::le: each(n, out, [=](Index i) { return T(a[i] <= b[i]); }); return true;
    case Op::gt: each(n, out, [=](Index i) { return T(a[i] > b[i]); }); return true;
    case Op::ge: each(n, out, [=](Index i) { return T(a[i] >= b[i]); }); return true;
    case Op::eq: each(n, out, [=](Index i) { return T(a[i] == b[i]); }); return true;
    case Op::ne: each(n, out, [=](Index i) { return T(a[i] != b[i]); }); return true;
    case Op::and_: each(n, out, [=](Index i) { return T((a[i] != 0) & (b[i] != 0)); }); return true;
    case Op::or_: each(n, out, [=](Index i) { return T((a[i] != 0) | (b[i] != 0)); }); return true;
    case Op::xor_: each(n, out, [=](Index i) { return T((a[i] != 0) != (b[i] != 0)); }); return true;
    case Op::sign: each(n, out, [=](Index i) { return T((a[i] > 0) - (a[i] < 0)); }); return true;
    case Op::not_: each(n, out, [=](Index i) { return T(a[i] == 0); }); return true;
    case Op::select: each(n, out, [=](Index i) { return a[i] != 0 ? b[i] : c[i]; }); return true;
    default: return false;
  }
}

}  // namespace

void apply(Op op, const Tables& tables, Index n, const float* a, const float* b, const float* c,
           float* out) {
  if (op >= Op::exp) return tables.apply(op, n, a, b, out);
  if (apply_common(op, n, a, b, c, out)) return;
  switch (op) {
    case Op::neg: return each(n, out, [=](Index i) { return -a[i]; });
    case Op::abs: return each(n, out, [=](Index i) { return std::fabs(a[i]); });
    case Op::floor: return each(n, out, [=](Index i) { return std::floor(a[i]); });
    case Op::ceil: return each(n, out, [=](Index i) { return std::ceil(a[i]); });
    case Op::round: return each(n, out, [=](Index i) { return std::nearbyint(a[i]); });
    case Op::trunc: return each(n, out, [=](Index i) { return std::trunc(a[i]); });
    case Op::isnan: return each(n, out, [=](Index i) { return float(std::isnan(a[i])); });
    case Op::isinf: return each(n, out, [=](Index i) { return float(std::isinf(a[i])); });
    case Op::isfinite: return each(n, out, [=](Index i) { return float(std::isfinite(a[i])); });
    case Op::fmod: return each(n, out, [=](Index i) { return std::fmod(a[i], b[i]); });
    case Op::add: return each(n, out, [=](Index i) { return a[i] + b[i]; });
    case Op::sub: return each(n, out, [=](Index i) { return a[i] - b[i]; });
    case Op::mul: return each(n, out, [=](Index i) { return a[i] * b[i]; });
    case Op::div: return each(n, out, [=](Index i) { return a[i] / b[i]; });
    case Op::floordiv: return each(n, out, [=](Index i) { return floor_divide(a[i], b[i]); });
    case Op::mod: return each(n, out, [=](Index i) { return modulo(a[i], b[i]); });
    case Op::min:
      return each(n, out, [=](Index i) { return a[i] != a[i] || a[i] < b[i] ? a[i] : b[i]; });
    case Op::max:
      return each(n, out, [=](Index i) { return a[i] != a[i] || a[i] > b[i] ? a[i] : b[i]; });
    case Op::fma:  // the product is exact in double
      return each(n, out, [=](Index i) {
        return static_cast<float>(static_cast<double>(a[i]) * b[i] + c[i]);
      });
    default: fail("has no float form");
  }
}

void apply(Op op, const Tables&, Index n, const std::int64_t* a, const std::int64_t* b,
           const std::int64_t* c, std::int64_t* out) {
  using U = std::uint64_t;  // wraps
  using I = std::int64_t;
  if (apply_common(op, n, a, b, c, out)) return;
  switch (op) {
    case Op::neg: return each(n, out, [=](Index i) { return I(-U(a[i])); });
    case Op::abs: return each(n, out, [=](Index i) { return a[i] < 0 ? I(-U(a[i])) : a[i]; });
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc: return each(n, out, [=](Index i) { return a[i]; });
    case Op::isnan:
    case Op::isinf: return each(n, out, [=](Index) { return I(0); });
    case Op::isfinite: return each(n, out, [=](Index) { return I(1); });
    case Op::fmod: return each(n, out, [=](Index i) { return truncated_modulo(a[i], b[i]); });
    case Op::bit_not: return each(n, out, [=](Index i) { return ~a[i]; });
    case Op::bit_and: return each(n, out, [=](Index i) { return a[i] & b[i]; });
    case Op::bit_or: return each(n, out, [=](Index i) { return a[i] | b[i]; });
    case Op::bit_xor: return each(n, out, [=](Index i) { return a[i] ^ b[i]; });
    case Op::shl: return each(n, out, [=](Index i) { return I(U(a[i]) << (U(b[i]) & 63)); });
    case Op::shr: return each(n, out, [=](Index i) { return a[i] >> (U(b[i]) & 63); });
    case Op::ipow: return each(n, out, [=](Index i) { return power(a[i], b[i]); });
    case Op::add: return each(n, out, [=](Index i) { return I(U(a[i]) + U(b[i])); });
    case Op::sub: return each(n, out, [=](Index i) { return I(U(a[i]) - U(b[i])); });
    case Op::mul: return each(n, out, [=](Index i) { return I(U(a[i]) * U(b[i])); });
    case Op::floordiv: return each(n, out, [=](Index i) { return floor_divide(a[i], b[i]); });
    case Op::mod: return each(n, out, [=](Index i) { return modulo(a[i], b[i]); });
    case Op::min: return each(n, out, [=](Index i) { return a[i] < b[i] ? a[i] : b[i]; });
    case Op::max: return each(n, out, [=](Index i) { return a[i] > b[i] ? a[i] : b[i]; });
    case Op::fma: return each(n, out, [=](Index i) { return I(U(a[i]) * U(b[i]) + U(c[i])); });
    default: fail("has no integer form");
  }
}

void apply(Op op, const Tables&, Index n, const std::int64_t* a, const std::int64_t* b,
           const std::int64_t*, float* out) {
  if (op != Op::uniform) fail("gives no floats of integers");
  each(n, out, [=](Index i) { return uniform(a[i], b[i]); });
}

}  // namespace sim
