#include "backends/sim/native/value.h"

#include <cmath>
#include <limits>
#include <vector>

#include "backends/sim/native/error.h"
#include "backends/sim/native/expect.h"
#include "backends/sim/native/gemm.h"

namespace sim {
namespace {

void every_half_survives_the_way_there_and_back() {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to(half);
    if (std::isnan(value)) {
      EXPECT(std::isnan(half_to(half_from(value))));
      EXPECT(std::isnan(bfloat_to(bfloat_from(bfloat_to(static_cast<std::uint16_t>(0x7fc1))))));
      continue;
    }
    EXPECT(half_from(value) == half);
  }
}

void halves_round_to_nearest_even() {
  EXPECT(half_from(1 + 0x1p-11f) == half_from(1.0f));             // a tie, down to even
  EXPECT(half_from(1 + 3 * 0x1p-11f) == half_from(1 + 0x1p-9f));  // a tie, up to even
  EXPECT(half_from(65519.0f) == 0x7bff);
  EXPECT(half_from(65520.0f) == 0x7c00);
  EXPECT(half_from(-1e9f) == 0xfc00);
  EXPECT(half_from(0x1p-25f) == 0);  // half of the least subnormal
  EXPECT(half_from(0x1.8p-25f) == 1);
  EXPECT(bfloat_from(1 + 0x1p-8f) == 0x3f80);
  EXPECT(bfloat_from(1 + 3 * 0x1p-8f) == 0x3f82);
  EXPECT(bfloat_from(std::numeric_limits<float>::max()) == 0x7f80);
  EXPECT(std::isnan(bfloat_to(bfloat_from(NAN))));
}

void integers_saturate_and_wrap() {
  std::int32_t out[3];
  auto* data = reinterpret_cast<std::byte*>(out);
  const float floats[] = {3e9f, -3e9f, -1.9f};
  write_floats(Dtype::i32, data, 1, 3, floats);
  EXPECT(out[0] == INT32_MAX && out[1] == INT32_MIN && out[2] == -1);
  const std::int64_t wide[] = {INT64_C(0x100000001)};
  write_integers(Dtype::i32, data, 1, 1, wide);
  EXPECT(out[0] == 1);
  const float nan = NAN;
  const auto write = [&] { write_floats(Dtype::i64, data, 1, 1, &nan); };
  EXPECT(message_of<SimulationError>(write) == "a NaN is converted to an integer");
}

template <class T>
void product_equals_the_plain_loop(device::Index m, device::Index n, device::Index k) {
  std::vector<T> a(m * k), b(k * n), c(m * n, T{1}), want(m * n, T{1});
  int next = 0;
  for (T& value : a) value = static_cast<T>(next++ * 7 % 13 - 6);
  for (T& value : b) value = static_cast<T>(next++ * 5 % 11 - 5);
  for (device::Index i = 0; i < m; ++i)
    for (device::Index j = 0; j < n; ++j)
      for (device::Index s = 0; s < k; ++s) want[i * n + j] += a[i * k + s] * b[s * n + j];
  gemm(m, n, k, a.data(), b.data(), c.data());
  EXPECT(c == want);  // small whole numbers: exact in any order
}

}  // namespace
}  // namespace sim

int main() {
  sim::every_half_survives_the_way_there_and_back();
  sim::halves_round_to_nearest_even();
  sim::integers_saturate_and_wrap();
  for (const int size : {1, 3, 4, 8, 9, 33, 300}) {
    sim::product_equals_the_plain_loop<float>(size, size + 1, size + 2);
    sim::product_equals_the_plain_loop<std::int32_t>(size + 2, size, size + 1);
  }
  return sim::failures != 0;
}
