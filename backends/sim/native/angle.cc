#include "backends/sim/native/angle.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace sim {
namespace {

__extension__ using Wide = unsigned __int128;

// The first 256 bits of 2 / pi after the point.
constexpr std::uint64_t kTwoOverPi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                        0xdb6295993c439041, 0xfe5163abdebbc561};

// 96 bits of 2 / pi from bit `first` on (bit 1 is a half); bits before the point are 0.
Wide window(int first) {
  Wide bits = 0;
  for (int i = 0; i < 96; ++i) {
    const int at = first - 1 + i;
    const bool set = at >= 0 && at < 256 && (kTwoOverPi[at / 64] >> (63 - at % 64) & 1);
    bits = bits << 1 | static_cast<Wide>(set);
  }
  return bits;
}

// x = mantissa * 2^exponent; multiples of four quarters fall out at the top.
Angle reduce_large(float x) {
  const auto pattern = std::bit_cast<std::uint32_t>(std::fabs(x));
  const int exponent = static_cast<int>(pattern >> 23) - 150;
  const std::uint32_t mantissa = (pattern & 0x7fffffu) | 0x800000u;
  // Bits of 2 / pi whose product with 2^exponent is less than 4: from bit exponent - 1 on. The
  // product is then in units of 2^-94.
  const Wide product = static_cast<Wide>(mantissa) * window(exponent - 1);
  constexpr int kPoint = 94;
  const Wide low = product & ((Wide{1} << (kPoint + 2)) - 1);
  const auto quarter = static_cast<int>((low + (Wide{1} << (kPoint - 1))) >> kPoint);
  const auto rest = static_cast<double>(static_cast<__int128>(low) -
                                        (static_cast<__int128>(quarter) << kPoint));
  return {quarter, std::ldexp(rest, -kPoint) * (std::numbers::pi / 2)};
}

}  // namespace

Angle reduce_angle(float x) {
  constexpr float kSmall = 0x1p12f;
  Angle angle;
  if (std::fabs(x) < kSmall) {
    const double turns = std::nearbyint(x * (2 / std::numbers::pi));
    // pi / 2 in two parts; the products with the turns are exact.
    angle.quarter = static_cast<int>(turns);
    angle.rest = (x - turns * 0x1.921fb544p0) - turns * 0x1.0b4611a626331p-34;
    return angle;
  }
  angle = reduce_large(x);
  if (x < 0) angle = {-angle.quarter, -angle.rest};
  return angle;
}

}  // namespace sim
