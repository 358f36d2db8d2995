#include "backends/sim/native/fold.h"

#include <limits>

#include "backends/sim/native/value.h"

namespace sim {

double float_identity(Fold how) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (how == Fold::max) return -infinity;
  if (how == Fold::min) return infinity;
  return how == Fold::prod ? 1 : 0;
}

std::int64_t integer_identity(Fold how, Dtype dtype) {
  if (how == Fold::sum) return 0;
  if (how == Fold::prod) return 1;
  if (dtype == Dtype::b8) return how == Fold::min;
  if (is_short(dtype)) {
    const std::int64_t width = dtype == Dtype::i16 ? 1 << 16 : 1 << 8;
    const std::int64_t least = dtype == Dtype::u8 ? 0 : -width / 2;
    return how == Fold::max ? least : least + width - 1;
  }
  if (dtype == Dtype::i32)
    return how == Fold::max ? std::numeric_limits<std::int32_t>::min()
                            : std::numeric_limits<std::int32_t>::max();
  return how == Fold::max ? std::numeric_limits<std::int64_t>::min()
                          : std::numeric_limits<std::int64_t>::max();
}

void fold_value(Fold how, Dtype dtype, std::byte* into, const std::byte* value) {
  if (is_float(dtype)) {
    float a, b;
    read_floats(dtype, into, 1, 1, &a);
    read_floats(dtype, value, 1, 1, &b);
    write_double(dtype, into, fold(how, static_cast<double>(a), static_cast<double>(b)));
  } else {
    std::int64_t a, b;
    read_integers(dtype, into, 1, 1, &a);
    read_integers(dtype, value, 1, 1, &b);
    const std::int64_t result = fold(how, a, b);
    write_integers(dtype, into, 1, 1, &result);
  }
}

}  // namespace sim
