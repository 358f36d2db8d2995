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
      "copy", "neg", "abs", "floor", "ceil", "add", "sub", "mul", "div", "floordiv", "mod",
      "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "select", "fma",
      "exp", "log", "sqrt", "rsqrt", "recip", "tanh", "sigmoid", "erf", "sin", "cos", "pow",
      "silu", "gelu"};
  return kNames[static_cast<int>(op)];
}

}  // namespace sim
