#include "backends/sim/native/value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/sim/native/error.h"

namespace sim {
namespace {

template <class T>
T at(const std::byte* data, Index i) {
  T value;
  std::memcpy(&value, data + i * static_cast<Index>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void put(std::byte* data, Index i, T value) {
  std::memcpy(data + i * static_cast<Index>(sizeof(T)), &value, sizeof(T));
}

// A stride of 1 as a constant lets the compiler vectorise. A conversion is given as a lambda, not
// by its name: a pointer to a function would be called for each value.
template <class T, class Out, class Convert>
void read_as(const std::byte* data, Index stride, Index n, Out* out, Convert convert) {
  if (stride == 0) {
    std::fill(out, out + n, convert(at<T>(data, 0)));
  } else if (stride == 1) {
    for (Index i = 0; i < n; ++i) out[i] = convert(at<T>(data, i));
  } else {
    for (Index i = 0; i < n; ++i) out[i] = convert(at<T>(data, i * stride));
  }
}

template <class T, class In, class Convert>
void write_as(std::byte* data, Index stride, Index n, const In* in, Convert convert) {
  if (stride == 1) {
    for (Index i = 0; i < n; ++i) put<T>(data, i, convert(in[i]));
  } else {
    for (Index i = 0; i < n; ++i) put<T>(data, i * stride, convert(in[i]));
  }
}

template <class T>
T integer_from(float value) {
  if (std::isnan(value)) fail("a NaN is converted to an integer");
  constexpr auto least = static_cast<float>(std::numeric_limits<T>::min());
  if (value < least) return std::numeric_limits<T>::min();
  if (value >= -least) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class T>
T narrow_from(float value) {
  return static_cast<T>(integer_from<std::int32_t>(value));
}

}  // namespace

std::uint16_t half_from(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t out;
  if (magnitude >= 0x47800000u) {  // 65536 and above, infinities, NaN
    out = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // subnormal: the adder rounds at the right bit
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    out = std::bit_cast<std::uint32_t>(sum) - 0x3f000000u;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    out = (magnitude - 0x38000000u + 0xfffu + odd) >> 13;
  }
  return static_cast<std::uint16_t>(out | sign);
}

void read_floats(Dtype dtype, const std::byte* data, Index stride, Index n, float* out) {
  const auto number = [](auto v) { return static_cast<float>(v); };
  switch (dtype) {
    case Dtype::f32: return read_as<float>(data, stride, n, out, number);
    case Dtype::f16: return read_as<std::uint16_t>(data, stride, n, out, [](auto v) { return half_to(v); });
    case Dtype::bf16: return read_as<std::uint16_t>(data, stride, n, out, [](auto v) { return bfloat_to(v); });
    case Dtype::i32: return read_as<std::int32_t>(data, stride, n, out, number);
    case Dtype::i64: return read_as<std::int64_t>(data, stride, n, out, number);
    case Dtype::i16: return read_as<std::int16_t>(data, stride, n, out, number);
    case Dtype::i8: return read_as<std::int8_t>(data, stride, n, out, number);
    case Dtype::u8:
    case Dtype::b8: return read_as<std::uint8_t>(data, stride, n, out, number);
  }
}

void read_integers(Dtype dtype, const std::byte* data, Index stride, Index n,
                   std::int64_t* out) {
  const auto number = [](auto v) { return static_cast<std::int64_t>(v); };
  switch (dtype) {
    case Dtype::i32: return read_as<std::int32_t>(data, stride, n, out, number);
    case Dtype::i64: return read_as<std::int64_t>(data, stride, n, out, number);
    case Dtype::i16: return read_as<std::int16_t>(data, stride, n, out, number);
    case Dtype::i8: return read_as<std::int8_t>(data, stride, n, out, number);
    case Dtype::u8:
    case Dtype::b8: return read_as<std::uint8_t>(data, stride, n, out, number);
    default: fail("values of ", name_of(dtype), " are read as integers");
  }
}

void write_floats(Dtype dtype, std::byte* data, Index stride, Index n, const float* in) {
  switch (dtype) {
    case Dtype::f32: return write_as<float>(data, stride, n, in, [](float v) { return v; });
    case Dtype::f16:
      return write_as<std::uint16_t>(data, stride, n, in, [](float v) { return half_from(v); });
    case Dtype::bf16:
      return write_as<std::uint16_t>(data, stride, n, in, [](float v) { return bfloat_from(v); });
    case Dtype::i32:
      return write_as<std::int32_t>(data, stride, n, in, integer_from<std::int32_t>);
    case Dtype::i64:
      return write_as<std::int64_t>(data, stride, n, in, integer_from<std::int64_t>);
    case Dtype::i16: return write_as<std::int16_t>(data, stride, n, in, narrow_from<std::int16_t>);
    case Dtype::i8: return write_as<std::int8_t>(data, stride, n, in, narrow_from<std::int8_t>);
    case Dtype::u8: return write_as<std::uint8_t>(data, stride, n, in, narrow_from<std::uint8_t>);
    case Dtype::b8:
      return write_as<std::uint8_t>(data, stride, n, in,
                                    [](float v) { return static_cast<std::uint8_t>(v != 0); });
  }
}

void write_integers(Dtype dtype, std::byte* data, Index stride, Index n,
                    const std::int64_t* in) {
  using I = std::int64_t;
  switch (dtype) {
    case Dtype::f32:
      return write_as<float>(data, stride, n, in, [](I v) { return static_cast<float>(v); });
    case Dtype::f16:
      return write_as<std::uint16_t>(data, stride, n, in,
                                     [](I v) { return half_from(static_cast<float>(v)); });
    case Dtype::bf16:
      return write_as<std::uint16_t>(data, stride, n, in,
                                     [](I v) { return bfloat_from(static_cast<float>(v)); });
    case Dtype::i32:
      return write_as<std::int32_t>(data, stride, n, in,
                                    [](I v) { return static_cast<std::int32_t>(v); });
    case Dtype::i64: return write_as<I>(data, stride, n, in, [](I v) { return v; });
    case Dtype::i16:
      return write_as<std::int16_t>(data, stride, n, in,
                                    [](I v) { return static_cast<std::int16_t>(v); });
    case Dtype::i8:
      return write_as<std::int8_t>(data, stride, n, in,
                                   [](I v) { return static_cast<std::int8_t>(v); });
    case Dtype::u8:
      return write_as<std::uint8_t>(data, stride, n, in,
                                    [](I v) { return static_cast<std::uint8_t>(v); });
    case Dtype::b8:
      return write_as<std::uint8_t>(data, stride, n, in,
                                    [](I v) { return static_cast<std::uint8_t>(v != 0); });
  }
}

void write_double(Dtype dtype, std::byte* data, double value) {
  const auto rounded = static_cast<float>(value);
  write_floats(dtype, data, 1, 1, &rounded);
}

}  // namespace sim
