#include "backends/sim/native/command.h"

namespace sim {

const char* name_of(Unit unit) {
  static constexpr const char* kNames[] = {"dma_in",  "dma_out",   "matrix",   "vector",
                                           "special", "reduction", "mesh_out", "mesh_in"};
  return kNames[static_cast<int>(unit)];
}

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {
      "load", "load_shared", "store", "add",  "send",   "receive", "map",
      "fill", "iota", "bucketize",   "take",  "reduce", "scan",    "matmul"};
  return kNames[static_cast<int>(kind)];
}

const char* name_of(Op op) {
  static constexpr const char* kNames[] = {
      "copy", "neg", "abs", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf",
      "isfinite", "not", "bit_not", "add", "sub", "mul", "div", "floordiv", "mod", "fmod", "min",
      "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "bit_and", "bit_or",
      "bit_xor", "shl", "shr", "ipow", "uniform", "select", "fma",
      "exp", "log", "sqrt", "rsqrt", "recip", "tanh", "sigmoid", "erf", "sin", "cos", "pow",
      "silu", "gelu", "exp2", "expm1", "log2", "log10", "log1p", "erfc", "tan", "asin", "acos",
      "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2"};
  return kNames[static_cast<int>(op)];
}

}  // namespace sim
