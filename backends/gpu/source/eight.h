// Floats of 8 bits, for languages whose headers have u8, u32 and the bits of a float.
#ifndef BACKENDS_GPU_SOURCE_EIGHT_H_
#define BACKENDS_GPU_SOURCE_EIGHT_H_

// 8 bits with kFraction of the significand, computed with as f32. Rounded to the nearest, ties to even;
// what is beyond kLargest becomes kBeyond, the code of the largest number or of infinity.
template <int kFraction, int kBias, int kLargest, int kBeyond>
struct Eight {
  static constexpr int kDropped = 23 - kFraction;
  u8 bits;
  Eight() = default;
  explicit Eight(float x) {
    const u32 b = __float_as_uint(x), size = b & 0x7fffffffu;
    u32 code = (size + (1u << (kDropped - 1)) - 1 + (size >> kDropped & 1u)) >> kDropped;
    code -= (127 - kBias) << kFraction;
    if (size < u32(128 - kBias) << 23)  // a subnormal number: a multiple of the least
      code = u32(rintf(fabsf(x) * __uint_as_float(u32(126 + kBias + kFraction) << 23)));
    else if (code > kLargest)
      code = kBeyond;
    bits = u8((size > 0x7f800000u ? 0x7f : code) | b >> 24 & 0x80u);
  }
  operator float() const {
    const u32 code = bits & 0x7fu, sign = u32(bits & 0x80u) << 24;
    const float size = __uint_as_float(code << kDropped) * __uint_as_float(u32(254 - kBias) << 23);
    if (code <= kLargest) return __uint_as_float(__float_as_uint(size) | sign);
    return __uint_as_float((code << kDropped | 0x7f800000u | (kBeyond == kLargest) << 22) | sign);
  }
  Eight& operator=(float x) { return *this = Eight(x); }
};
using f8e4m3 = Eight<3, 7, 0x7e, 0x7e>;
using f8e5m2 = Eight<2, 15, 0x7b, 0x7c>;

// A power of two, 2^(bits - 127), or NaN. Rounded to the nearest, ties up; a sign is lost.
struct f8e8m0 {
  u8 bits;
  f8e8m0() = default;
  explicit f8e8m0(float x) {
    const u32 size = __float_as_uint(x) & 0x7fffffffu, code = size >> 23, rest = size & 0x7fffffu;
    bits = u8(code + (code != 0xff && (rest > 0x400000u || (rest == 0x400000u && code))));
  }
  operator float() const {
    if (bits == 0xff) return __uint_as_float(0x7fc00000u);
    return __uint_as_float(bits ? u32(bits) << 23 : 0x400000u);  // the least is no normal number
  }
  f8e8m0& operator=(float x) { return *this = f8e8m0(x); }
};

#endif  // BACKENDS_GPU_SOURCE_EIGHT_H_
