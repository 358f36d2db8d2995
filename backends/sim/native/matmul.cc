// The matrix engine's command.
#include <type_traits>
#include <vector>

#include "backends/sim/native/cost.h"
#include "backends/sim/native/execute.h"
#include "backends/sim/native/gemm.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

constexpr unsigned kResult = 1, kFirst = 2, kSecond = 4;

// The loops that belong to one operand of the product, rows before columns, as a walk of its own.
Walk part(const Walk& walk, int operand, unsigned rows, unsigned columns) {
  Walk own;
  own.operands = 1;
  own.view[0] = walk.view[operand];
  for (const unsigned has : {rows, columns}) {
    for (int i = 0; i < walk.loops; ++i) {
      if (walk.loop[i].has != has || walk.loop[i].extent == 1) continue;
      Loop& loop = own.loop[own.loops++];
      loop.has = 1;
      loop.extent = walk.loop[i].extent;
      loop.stride[0] = walk.loop[i].stride[operand];
    }
  }
  own.join(0, own.loops);
  return own;
}

// Visits the runs of a part that starts `shift` elements further: visit(element, stride, count).
template <class Visit>
void for_dense(const Walk& walk, Index shift, Visit visit) {
  const int inner = walk.loops - 1;
  const Index start[kOperands] = {shift};
  if (inner < 0) return visit(shift, Index{1}, Index{1});
  for_positions(walk, 0, inner, start, [&](const Index(&at)[kOperands]) {
    visit(at[0], walk.loop[inner].stride[0], walk.loop[inner].extent);
  });
}

template <class T>
void gather(const Walk& walk, Index shift, const std::byte* data, T* out) {
  const Dtype dtype = walk.view[0].dtype;
  for_dense(walk, shift, [&](Index element, Index stride, Index n) {
    const std::byte* from = data + element * size_of(dtype);
    if constexpr (std::is_same_v<T, float>) {
      read_floats(dtype, from, stride, n, out);
    } else {
      for (Index i = 0; i < n; ++i) {
        std::int64_t wide;
        read_integers(dtype, from + i * stride * size_of(dtype), 1, 1, &wide);
        out[i] = static_cast<std::int32_t>(wide);
      }
    }
    out += n;
  });
}

template <class T>
void scatter(const Walk& walk, Index shift, std::byte* data, const T* in) {
  const Dtype dtype = walk.view[0].dtype;
  for_dense(walk, shift, [&](Index element, Index stride, Index n) {
    std::byte* to = data + element * size_of(dtype);
    if constexpr (std::is_same_v<T, float>) {
      write_floats(dtype, to, stride, n, in);
    } else {
      for (Index i = 0; i < n; ++i) {
        const std::int64_t wide = in[i];
        write_integers(dtype, to + i * stride * size_of(dtype), 1, 1, &wide);
      }
    }
    in += n;
  });
}

template <class T>
void multiply(const Command& command, LocalMemory& memory) {
  const Walk& walk = command.walk;
  const Product p = product_of(walk);
  const Walk to = part(walk, 0, kResult | kFirst, kResult | kSecond);
  const Walk first = part(walk, 1, kResult | kFirst, kFirst | kSecond);
  const Walk second = part(walk, 2, kFirst | kSecond, kResult | kSecond);
  std::vector<T> a(static_cast<std::size_t>(p.m * p.k));
  std::vector<T> b(static_cast<std::size_t>(p.k * p.n));
  std::vector<T> c(static_cast<std::size_t>(p.m * p.n));
  Walk batch = walk;
  bool other[device::kMaxRank];
  for (int i = 0; i < batch.loops; ++i)
    other[i] = batch.loop[i].has != (kResult | kFirst | kSecond);
  const int batches = batch.partition(other);
  const Index none[kOperands] = {};
  for_positions(batch, 0, batches, none, [&](const Index(&at)[kOperands]) {
    gather(first, at[1], data_of(walk, 1, memory), a.data());
    gather(second, at[2], data_of(walk, 2, memory), b.data());
    if (command.accumulate) {
      gather(to, at[0], data_of(walk, 0, memory), c.data());
    } else {
      std::fill(c.begin(), c.end(), T{});
    }
    gemm(p.m, p.n, p.k, a.data(), b.data(), c.data());
    scatter(to, at[0], data_of(walk, 0, memory), c.data());
  });
}

}  // namespace

void execute_matmul(const Command& command, LocalMemory& memory) {
  const Walk& walk = command.walk;
  check_written(walk, 1, memory);
  check_written(walk, 2, memory);
  if (command.accumulate) check_written(walk, 0, memory);
  if (is_float(walk.view[1].dtype)) {
    multiply<float>(command, memory);
  } else {
    multiply<std::int32_t>(command, memory);
  }
  mark_written(walk, 0, memory);
}

}  // namespace sim
