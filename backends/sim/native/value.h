// Numbers as they lie in memory: dtypes, their sizes, and conversion to and from them.
#ifndef BACKENDS_SIM_NATIVE_VALUE_H_
#define BACKENDS_SIM_NATIVE_VALUE_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/sim/native/device/device.h"

namespace sim {

using device::Dtype;
using device::Index;

inline constexpr int kSizes[] = {4, 2, 2, 4, 8, 1, 2, 1, 1};
inline constexpr const char* kNames[] = {"f32", "f16", "bf16", "i32", "i64", "b8",
                                         "i16", "i8",  "u8"};

inline int size_of(Dtype dtype) { return kSizes[static_cast<int>(dtype)]; }
inline const char* name_of(Dtype dtype) { return kNames[static_cast<int>(dtype)]; }
inline bool is_float(Dtype dtype) { return dtype <= Dtype::bf16; }
inline bool is_index(Dtype dtype) { return dtype == Dtype::i32 || dtype == Dtype::i64; }
// Integers that are only stored: what is computed of them is wider.
inline bool is_short(Dtype dtype) { return dtype >= Dtype::i16; }

// Round to nearest, ties to even; NaN stays NaN, what is too great becomes infinite.
std::uint16_t half_from(float value);
inline float half_to(std::uint16_t bits) {
  const float magic = std::bit_cast<float>(std::uint32_t{0x77800000});  // 2^112
  const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
  std::uint32_t out = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * magic);
  if (magnitude >= 0x0f800000u) out = magnitude | 0x7f800000u;
  return std::bit_cast<float>(out | (static_cast<std::uint32_t>(bits & 0x8000u) << 16));
}
inline std::uint16_t bfloat_from(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
inline float bfloat_to(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// `n` values, `stride` elements apart, the first at `data`. Integers wrap when narrowed; floats
// become integers toward zero, saturating (to i32 before they are narrowed further), and a NaN
// throws SimulationError.
void read_floats(Dtype dtype, const std::byte* data, Index stride, Index n, float* out);
void read_integers(Dtype dtype, const std::byte* data, Index stride, Index n, std::int64_t* out);
void write_floats(Dtype dtype, std::byte* data, Index stride, Index n, const float* in);
void write_integers(Dtype dtype, std::byte* data, Index stride, Index n, const std::int64_t* in);
// As write_floats, for values that were computed in double; rounded once to f32 first.
void write_double(Dtype dtype, std::byte* data, double value);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_VALUE_H_
