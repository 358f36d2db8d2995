#include "backends/sim/native/reduction.h"

#include <limits>

#include "backends/sim/native/value.h"

namespace sim {

double float_identity(Reduction how) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (how == Reduction::max) return -infinity;
  if (how == Reduction::min) return infinity;
  return how == Reduction::prod ? 1 : 0;
}

std::int64_t integer_identity(Reduction how, Dtype dtype) {
  if (how == Reduction::sum) return 0;
  if (how == Reduction::prod) return 1;
  if (dtype == Dtype::b8) return how == Reduction::min;
  if (is_short(dtype)) {
    const std::int64_t width = dtype == Dtype::i16 ? 1 << 16 : 1 << 8;
    const std::int64_t least = dtype == Dtype::u8 ? 0 : -width / 2;
    return how == Reduction::max ? least : least + width - 1;
  }
  if (dtype == Dtype::i32)
    return how == Reduction::max ? std::numeric_limits<std::int32_t>::min()
                            : std::numeric_limits<std::int32_t>::max();
  return how == Reduction::max ? std::numeric_limits<std::int64_t>::min()
                          : std::numeric_limits<std::int64_t>::max();
}

void reduction_value(Reduction how, Dtype dtype, std::byte* into, const std::byte* value) {
  if (is_float(dtype)) {
    float a, b;
    read_floats(dtype, into, 1, 1, &a);
    read_floats(dtype, value, 1, 1, &b);
    write_double(dtype, into, reduction(how, static_cast<double>(a), static_cast<double>(b)));
  } else {
    std::int64_t a, b;
    read_integers(dtype, into, 1, 1, &a);
    read_integers(dtype, value, 1, 1, &b);
    const std::int64_t result = reduction(how, a, b);
    write_integers(dtype, into, 1, 1, &result);
  }
}

}  // namespace sim
