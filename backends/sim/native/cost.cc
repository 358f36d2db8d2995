#include "backends/sim/native/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

constexpr Index kUniform = 64;  // operations of the vector core in ten rounds of Philox
constexpr Index kPower = 64;    // and in a power of integers, by squaring
constexpr int kResult = 1, kFirst = 2, kSecond = 4;

double rate(const Rates& rates, Dtype dtype, Unit unit) {
  const double found = rates[static_cast<std::size_t>(dtype)];
  if (found <= 0)
    fail("the ", name_of(unit), " engine does not take ", name_of(dtype),
         "; copy to another dtype");
  return found;
}

// The rate for the widest operand.
double slowest(const Command& command, const Rates& rates) {
  double least = 0;
  for (int i = 0; i < command.walk.operands; ++i) {
    if (command.walk.view[i].constant) continue;
    const double found = rate(rates, command.walk.view[i].dtype, command.unit);
    least = least == 0 ? found : std::min(least, found);
  }
  return least;
}

Time divide(Index amount, double rate) {
  return static_cast<Time>(std::ceil(static_cast<double>(amount) / rate - 1e-9));
}

Time matrix(const Command& command, const MatrixSpec& spec) {
  const Product p = product_of(command.walk);
  const double depth = rate(spec.depth_per_cycle, command.walk.view[1].dtype, command.unit);
  return p.batch * ((p.m + spec.rows - 1) / spec.rows) *
         ((p.n + spec.columns - 1) / spec.columns) * divide(p.k, depth);
}

const LanesSpec& lanes_of(const Command& command, const Spec& spec) {
  if (command.unit == Unit::special) return spec.special;
  return command.unit == Unit::reduction ? spec.reduction : spec.vector;
}

}  // namespace

Product product_of(const Walk& walk) {
  Product product;
  for (int i = 0; i < walk.loops; ++i) {
    const Loop& loop = walk.loop[i];
    if (loop.extent == 1) continue;
    switch (loop.has) {
      case kResult | kFirst | kSecond: product.batch *= loop.extent; break;
      case kResult | kFirst: product.m *= loop.extent; break;
      case kResult | kSecond: product.n *= loop.extent; break;
      case kFirst | kSecond: product.k *= loop.extent; break;
      default:
        fail("axis ", loop.axis, " is in ", std::popcount(loop.has),
             " of the three tiles; it must be in two or three");
    }
  }
  return product;
}

Time occupancy(const Command& command, const Spec& spec) {
  if (command.unit == Unit::matrix) return std::max<Time>(1, matrix(command, spec.matrix));
  Index work = command.walk.elements();
  if (command.kind == Kind::bucketize)
    work *= std::bit_width(static_cast<std::uint64_t>(command.count));  // ceil(log2(count + 1))
  if (command.kind == Kind::map && command.op == device::Op::uniform) work *= kUniform;
  if (command.kind == Kind::map && command.op == device::Op::ipow) work *= kPower;
  return std::max<Time>(1, divide(work, slowest(command, lanes_of(command, spec).lanes)));
}

Time startup(const Command& command, const Spec& spec) {
  if (command.unit == Unit::matrix) return spec.matrix.startup_cycles;
  return lanes_of(command, spec).startup_cycles;
}

Index local_bytes(const Command& command) {
  Index sum = 0;
  for (int i = 0; i < command.walk.operands; ++i)
    if (!command.walk.view[i].constant)
      sum += command.walk.elements(i) * size_of(command.walk.view[i].dtype);
  return sum;
}

}  // namespace sim
