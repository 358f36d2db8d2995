#include "backends/sim/native/tables.h"

#include <cmath>
#include <cstring>
#include <random>

#include "backends/sim/native/angle.h"
#include "backends/sim/native/expect.h"

namespace sim {
namespace {

using device::Op;
using Exact = long double (*)(long double, long double);

// The error of an f32 result in units of its last place.
double ulps(float got, long double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(rounded) || std::isinf(rounded) || std::isinf(got)) {
    const bool same = std::isnan(rounded) ? std::isnan(got) : got == rounded;
    return same ? 0 : INFINITY;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const double last = std::ldexp(1.0, std::max(exponent, -125) - 24);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want)) / last;
}

enum class Domain { all, positive, unit, above_one };

struct Function {
  Op op;
  Exact exact;
  Domain domain = Domain::all;
};

constexpr Function kFunctions[] = {
    {Op::exp, [](long double x, long double) { return std::exp(x); }},
    {Op::log, [](long double x, long double) { return std::log(x); }, Domain::positive},
    {Op::sqrt, [](long double x, long double) { return std::sqrt(x); }, Domain::positive},
    {Op::rsqrt, [](long double x, long double) { return 1 / std::sqrt(x); }, Domain::positive},
    {Op::recip, [](long double x, long double) { return 1 / x; }},
    {Op::tanh, [](long double x, long double) { return std::tanh(x); }},
    {Op::sigmoid, [](long double x, long double) { return 1 / (1 + std::exp(-x)); }},
    {Op::erf, [](long double x, long double) { return std::erf(x); }},
    {Op::sin, [](long double x, long double) { return std::sin(x); }},
    {Op::cos, [](long double x, long double) { return std::cos(x); }},
    {Op::pow, [](long double x, long double y) { return std::pow(x, y); }, Domain::positive},
    {Op::silu, [](long double x, long double) { return x / (1 + std::exp(-x)); }},
    {Op::gelu,
     [](long double x, long double) { return x / 2 * std::erfc(-x / std::sqrt(2.0L)); }},
    {Op::exp2, [](long double x, long double) { return std::exp2(x); }},
    {Op::expm1, [](long double x, long double) { return std::expm1(x); }},
    {Op::log2, [](long double x, long double) { return std::log2(x); }, Domain::positive},
    {Op::log10, [](long double x, long double) { return std::log10(x); }, Domain::positive},
    {Op::log1p, [](long double x, long double) { return std::log1p(x); }},
    {Op::erfc, [](long double x, long double) { return std::erfc(x); }},
    {Op::tan, [](long double x, long double) { return std::tan(x); }},
    {Op::asin, [](long double x, long double) { return std::asin(x); }, Domain::unit},
    {Op::acos, [](long double x, long double) { return std::acos(x); }, Domain::unit},
    {Op::atan, [](long double x, long double) { return std::atan(x); }},
    {Op::sinh, [](long double x, long double) { return std::sinh(x); }},
    {Op::cosh, [](long double x, long double) { return std::cosh(x); }},
    {Op::asinh, [](long double x, long double) { return std::asinh(x); }},
    {Op::acosh, [](long double x, long double) { return std::acosh(x); }, Domain::above_one},
    {Op::atanh, [](long double x, long double) { return std::atanh(x); }, Domain::unit},
    {Op::atan2, [](long double x, long double y) { return std::atan2(x, y); }},
};

double worst(const Tables& tables, const Function& function) {
  std::mt19937 random(7);
  double most = 0;
  for (int i = 0; i < 60000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float x;
    std::memcpy(&x, &bits, sizeof x);  // every size of number
    if (i % 2 == 0) x = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-27f;
    if (!std::isfinite(x)) continue;
    if (function.domain == Domain::positive) x = std::fabs(x);
    if (function.domain == Domain::unit) x = std::fmod(x, 1.0f);
    if (function.domain == Domain::above_one) x = 1 + std::fabs(x);
    const float y = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-28f;
    float got;
    tables.apply(function.op, 1, &x, &y, &got);
    most = std::max(most, ulps(got, function.exact(x, y)));
  }
  return most;
}

void results_are_within_one_unit_in_the_last_place() {
  for (const int bits : {5, 8, 12}) {
    const Tables tables(bits);
    for (const Function& function : kFunctions) EXPECT(worst(tables, function) < 0.6);
  }
}

void angles_are_exact_however_large() {
  for (const float x : {0.5f, -3.0f, 4095.0f, 4097.0f, 1e9f, -1e20f, 3.4e38f}) {
    const Angle angle = reduce_angle(x);
    const long double turns = angle.quarter;
    const long double back = std::sin(turns * (3.14159265358979323846264338L / 2) + angle.rest);
    EXPECT(std::fabs(back - std::sin(static_cast<long double>(x))) < 1e-15L);
    EXPECT(std::fabs(angle.rest) <= 0.7854);
  }
}

}  // namespace
}  // namespace sim

int main() {
  sim::results_are_within_one_unit_in_the_last_place();
  sim::angles_are_exact_however_large();
  return sim::failures != 0;
}
