// What a generated kernel may use: the device interface of the simulated accelerator.
//
// A kernel is one coroutine per processing element (PE). It issues commands; each command
// goes to the in-order queue of one engine (DMA in, DMA out, matrix, vector, special,
// reduction) and the engines run in parallel. A command waits until the tiles it reads are
// written and the tile it writes is no longer read: local memory carries the dependences, so
// a program reads as if it ran in order. How far engines run ahead of one another is bounded
// by the stages of the circular buffers and the length of the queues.
//
// Await each command, and each number in a declaration of its own (`Index n = co_await ...`): an
// older compiler drops a program whose first statement awaits inside its condition.
//
// Tiles have named axes. A command gets a box (axis -> extent) and walks it; an operand that
// lacks an axis is broadcast along it. Only `reduce` and `matmul` sum over the axes that their
// result lacks; elsewhere a result must have every axis of the box. A tile may have no axis that
// the box lacks: fix it first.
//
// Global memory carries no dependences. A load sees what was stored by earlier launches and,
// within a launch, what was stored before a barrier; other overlaps are races.
// -- The simulator's own --
#ifndef BACKENDS_SIM_NATIVE_DEVICE_DEVICE_H_
#define BACKENDS_SIM_NATIVE_DEVICE_DEVICE_H_

#include <coroutine>
#include <cstdint>

namespace device {

// -- For kernels --
using Index = std::int64_t;
using Axis = std::uint16_t;  // a name for an axis; kernels declare them in an enum

// -- The simulator's own --
// Thrown for a wrong use that the header itself can see; it ends the simulation as an error.
struct Misuse {
  const char* what;
};

// -- For kernels --
enum class Dtype : std::uint8_t { f32, f16, bf16, i32, i64, b8, i16, i8, u8 };

// -- The simulator's own --
inline constexpr int kMaxRank = 12;
inline constexpr Axis kNoAxis = 0xffff;

// -- For kernels --
// A `List` is written in braces, `{a, b}`, with 12 items at most.

// One axis of a box or of a buffer, with how many elements there are along it.
struct Span {
  Axis axis;
  Index extent;
};

// -- The simulator's own --
// A small ordered list that lives by value. One constructor a length, not an initializer_list:
// those cannot be arguments of an awaited call in older compilers.
template <class T>
struct List {
  int size = 0;
  T at[kMaxRank] = {};
  constexpr List() = default;
  constexpr List(T a) : size(1), at{a} {}
  constexpr List(T a, T b) : size(2), at{a, b} {}
  constexpr List(T a, T b, T c) : size(3), at{a, b, c} {}
  constexpr List(T a, T b, T c, T d) : size(4), at{a, b, c, d} {}
  constexpr List(T a, T b, T c, T d, T e) : size(5), at{a, b, c, d, e} {}
  constexpr List(T a, T b, T c, T d, T e, T f) : size(6), at{a, b, c, d, e, f} {}
  constexpr List(T a, T b, T c, T d, T e, T f, T g) : size(7), at{a, b, c, d, e, f, g} {}
  constexpr List(T a, T b, T c, T d, T e, T f, T g, T h) : size(8), at{a, b, c, d, e, f, g, h} {}
  constexpr List(T a, T b, T c, T d, T e, T f, T g, T h, T i)
      : size(9), at{a, b, c, d, e, f, g, h, i} {}
  constexpr List(T a, T b, T c, T d, T e, T f, T g, T h, T i, T j)
      : size(10), at{a, b, c, d, e, f, g, h, i, j} {}
  constexpr List(T a, T b, T c, T d, T e, T f, T g, T h, T i, T j, T k)
      : size(11), at{a, b, c, d, e, f, g, h, i, j, k} {}
  constexpr List(T a, T b, T c, T d, T e, T f, T g, T h, T i, T j, T k, T l)
      : size(12), at{a, b, c, d, e, f, g, h, i, j, k, l} {}
  constexpr void add(T item) {
    if (size == kMaxRank) throw Misuse{"more than 12 axes"};
    at[size++] = item;
  }
  const T* begin() const { return at; }
  const T* end() const { return at + size; }
};
// -- For kernels --
using Box = List<Span>;

// One axis of a tile: moving by one along it moves `stride` elements in local memory.
struct Step {
  Axis axis;
  Index stride;
};

// A value in local memory (a slot of a circular buffer) seen along named axes.
struct Tile {
  std::uint32_t slot = 0;
  Dtype dtype = Dtype::f32;
  Index offset = 0;  // in elements, from the start of the slot
  List<Step> axes;

  // The same values with `axis` fixed at `position`.
  Tile fix(Axis axis, Index position) const {
    Tile t = *this;
    t.offset += position * t.remove(axis);
    return t;
  }
  // The same values with `axis` called `name`. If the tile has `name` already, the two move
  // together (a diagonal).
  Tile rename(Axis axis, Axis name) const { return window(axis, Step{name, 1}); }
  // Replaces `axis` by several: position = sum of coefficient * new position (a window). The
  // constant part of the position is a `fix` or a `shift` before it.
  Tile window(Axis axis, List<Step> parts) const {
    Tile t = *this;
    const Index stride = t.remove(axis);
    for (const Step& part : parts) t.axes.add({part.axis, part.stride * stride});
    return t;
  }
  // The same values with position 0 of `axis` moved to `position`.
  Tile shift(Axis axis, Index position) const {
    Tile t = *this;
    t.offset += position * Tile(*this).remove(axis);
    return t;
  }

// -- The simulator's own --
 private:
  Index remove(Axis axis) {
    for (int i = 0; i < axes.size; ++i) {
      if (axes.at[i].axis != axis) continue;
      const Index stride = axes.at[i].stride;
      for (--axes.size; i < axes.size; ++i) axes.at[i] = axes.at[i + 1];
      return stride;
    }
    throw Misuse{"a tile lacks the axis named in fix, shift, rename or window"};
  }
// -- For kernels --
};

// A circular buffer of `stages` slots in local memory; `next` moves on to the next slot. What a
// slot held stays there until it is written again. The first `next` gives slot 1 (slot 0 if the
// stages is 1): either start with `tile`, or use `next` throughout.
struct Buffer {
  std::uint32_t id = 0;
  std::uint32_t first_slot = 0;
  std::uint32_t stages = 1;
  std::uint32_t turn = 0;
  Tile shape;  // axes and dtype, slot 0

  Tile tile() const {
    Tile t = shape;
    t.slot = first_slot + turn;
    return t;
  }
  Tile next() {
    turn = turn + 1 == stages ? 0 : turn + 1;
    return tile();
  }
};

// A tensor in global memory, by its place in the launch's argument list. Row-major.
struct Tensor {
  std::uint32_t id;
};

// Where one dimension of a tensor is read or written.
//   {start}                one position
//   {start, axis, extent}  `extent` consecutive positions, along `axis` of the tile
//   {start, axis, extent, step}    every `step`-th position
//   indirect(rows, axis, extent)   positions that the i32 or i64 tile `rows` holds along `axis`
//                                  (its only axis); the command reads `rows` when it runs. Without
//                                  axes (kNoAxis, 1) it is one position
//   scattered(rows, box)           likewise along the axes of a box. Then several dimensions may
//                                  run along one axis: they go together, element by element
// The tile has exactly the axes that the region names, and the dtype of the tensor.
struct Slice {
  Index start = 0;
  Axis axis = kNoAxis;
  Index extent = 1;
  Index step = 1;
  const Tile* rows = nullptr;
  Box along = {};  // of scattered rows
};
inline Slice indirect(const Tile& rows, Axis axis, Index extent) {
  return {0, axis, extent, 1, &rows, {}};
}
inline Slice scattered(const Tile& rows, const Box& along) {
  return {0, kNoAxis, 1, 1, &rows, along};
}
using Region = List<Slice>;

// What happens to the part of a load that lies outside its tensor.
struct Outside {
  bool allowed = false;
  double value = 0;  // what such elements read as
};
inline constexpr Outside kRefuse{};
constexpr Outside pad(double value) { return {true, value}; }

//
// A map computes in f32 if an operand is a float tile, if a constant has a fraction, or if the
// operation is div, fma of floats, or of the special-function unit; else in 64-bit integers
// (floor division and modulo round down, as in Python). i32 and i64 tiles do not mix with float
// tiles: copy converts (to an integer: toward zero, saturating; a NaN is an error). b8 mixes with
// both, as 0 or 1. Comparisons and logic give 0 or 1; logic takes anything but 0 as true.
// select(c, a, b) is a where c is not 0, else b; fma(a, b, c) is a * b + c, rounded once.
// min and max give NaN if an operand is NaN. The result is rounded to the dtype of `to`.
// round takes ties to the even; sign is 0 of NaN; fmod has the sign of the dividend. bit_not to
// ipow are of integers alone: shifts by 0 to 63, shr keeps the sign, and ipow of a negative
// exponent is 0 but for a base of 1 or -1. uniform(seed, counter) is of integers and gives a float
// of 24 bits in [0, 1): the first word of Philox4x32-10, of the key `seed`.
enum class Op : std::uint8_t {
  // vector core
  copy, neg, abs, floor, ceil, round, trunc, sign, isnan, isinf, isfinite, not_, bit_not,
  add, sub, mul, div, floordiv, mod, fmod, min, max, lt, le, gt, ge, eq, ne, and_, or_, xor_,
  bit_and, bit_or, bit_xor, shl, shr, ipow, uniform, select, fma,
  // special-function unit (tables)
  exp, log, sqrt, rsqrt, recip, tanh, sigmoid, erf, sin, cos, pow, silu, gelu,
  exp2, expm1, log2, log10, log1p, erfc, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh,
  atan2,
};
enum class Reduction : std::uint8_t { sum, max, min, prod };

// An operand of a vector command: a tile or a constant.
struct Operand {
  bool constant;
  double value = 0;
  Tile tile;
  Operand(const Tile& t) : constant(false), tile(t) {}   // NOLINT: implicit on purpose
  Operand(double v) : constant(true), value(v) {}        // NOLINT
  Operand(float v) : Operand(static_cast<double>(v)) {}  // NOLINT
  Operand(int v) : Operand(static_cast<double>(v)) {}    // NOLINT
  Operand(Index v) : Operand(static_cast<double>(v)) {}  // NOLINT
};
struct Operands {
  int size;
  Operand at[3];
  Operands(Operand a) : size(1), at{a, 0, 0} {}             // NOLINT
  Operands(Operand a, Operand b) : size(2), at{a, b, 0} {}  // NOLINT
  Operands(Operand a, Operand b, Operand c) : size(3), at{a, b, c} {}
};

// PEs that take part in one shared load: `size` of them, told apart from others by `id`. The
// n-th shared load of each with this id is the same load.
struct Group {
  Index id;
  Index size;
};

// -- The simulator's own --
class Pe;

// Awaited by the program: goes on at once, or when the engine's queue has room.
struct [[nodiscard]] Issued {
  Pe* pe;
  bool room;
  bool await_ready() const noexcept { return room; }
  void await_suspend(std::coroutine_handle<> program) const;
  void await_resume() const noexcept {}
};

// Awaited by the program: a number read from global memory; the program waits for it.
struct [[nodiscard]] Number {
  Pe* pe;
  Index value = 0;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> program) const;
  Index await_resume() const noexcept { return value; }
};

// The simulator implements it, so a kernel needs nothing at link time.
// -- For kernels --
// One processing element, as its program sees it. Commands give an `Issued`, which is awaited at once.
class Pe {
 public:
// -- The simulator's own --
  virtual ~Pe() = default;
// -- For kernels --

  // Who am I: 0 .. count()-1, row by row in the grid.
  virtual Index id() const = 0;
  virtual Index count() const = 0;
  virtual Index rows() const = 0;
  virtual Index columns() const = 0;

  // Reserves local memory for `stages` tiles of the given axes (first axis outermost). A buffer
  // takes stages * elements * bytes of the dtype, rounded up to a multiple of 8.
  virtual Buffer buffer(const char* name, Dtype dtype, Box box, Index stages) = 0;

  // DMA in. A dimension of the tensor with an axis runs along that axis of the tile. With `pad`,
  // positions outside the tensor (also those of `indirect`) read as its value.
  virtual Issued load(const Tile& to, Tensor from, const Region& region,
                      Outside outside = kRefuse) = 0;
  // The same region for every PE of the group: read once, broadcast over the mesh.
  virtual Issued load_shared(const Tile& to, Tensor from, const Region& region, Group group,
                             Outside outside = kRefuse) = 0;
  // A scalar of an integer tensor, for loop bounds.
  virtual Number number(Tensor from, List<Index> position) = 0;
  // DMA out. Outside parts are refused. `add` accumulates atomically.
  virtual Issued store(Tensor to, const Region& region, const Tile& from) = 0;
  virtual Issued add(Tensor to, const Region& region, const Tile& from) = 0;

  // Mesh: a tile to another PE, and from one; `reduction` combines it with what `to` holds. The n-th
  // send from one PE to another meets the n-th receive there: same dtype, same extents in the
  // order of the box. Neither goes on before both are ready; sends and receives of a PE have
  // queues of their own.
  virtual Issued send(Index to_pe, const Tile& from, const Box& box) = 0;
  virtual Issued receive(const Tile& to, Index from_pe, const Box& box) = 0;
  virtual Issued receive(const Tile& to, Index from_pe, const Box& box, Reduction reduction) = 0;

  // Vector core and special-function unit (which one is the operation's). All operands are read
  // before the result is written, so `to` may also be an operand.
  virtual Issued map(Op op, const Tile& to, Operands from, const Box& box) = 0;
  virtual Issued fill(const Tile& to, double value, const Box& box) = 0;
  // to = start + position along `axis`.
  virtual Issued iota(const Tile& to, Axis axis, Index start, const Box& box) = 0;
  // to = how many of the `count` sorted borders (along `axis` of `borders`) are < value; a NaN
  // counts as above all. The box lacks `axis`.
  virtual Issued bucketize(const Tile& to, const Tile& values, const Tile& borders, Axis axis,
                           Index count, const Box& box) = 0;
  // to = table with `axis` fixed at the position that `at` holds; `count` positions are valid.
  virtual Issued take(const Tile& to, const Tile& table, Axis axis, Index count, const Tile& at,
                      const Box& box) = 0;

  // Reduction unit: over the axes of the box that `to` lacks; with `accumulate`, onto `to`. Within
  // a command floats are summed in float64 and rounded once. Over nothing: 0, 1, or for max and
  // min the least and greatest value of the dtype.
  virtual Issued reduce(Reduction reduction, const Tile& to, const Tile& from, const Box& box,
                        bool accumulate) = 0;
  // Inclusive scan along `axis`, starting from and updating `carry` (which lacks the axis).
  virtual Issued scan(Reduction reduction, const Tile& to, const Tile& from, Axis axis, const Tile& carry,
                      const Box& box) = 0;

  // Matrix engine: to += a * b, summed over the axes that `to` lacks; `to` is f32 (i32 for
  // integers); a and b have one dtype; an axis of all three is a batch. Without
  // `accumulate`, to = a * b. Every axis of the box is in two or three of the tiles.
  virtual Issued matmul(const Tile& to, const Tile& a, const Tile& b, const Box& box,
                        bool accumulate) = 0;

  // Waits for every PE of the launch to come here, with all its earlier commands completed.
  virtual Issued barrier() = 0;

// -- The simulator's own --
  // The program has done so much arithmetic since the last call. The build puts the calls into
  // loops; a kernel has none of its own.
  virtual void scalars(Index operations) = 0;

 protected:
  friend struct Issued;
  friend struct Number;
  virtual void park(std::coroutine_handle<> program) = 0;
  virtual void await_number(std::coroutine_handle<> program, Number* into) = 0;
// -- For kernels --
};
// -- The simulator's own --

inline void Issued::await_suspend(std::coroutine_handle<> program) const { pe->park(program); }
inline void Number::await_suspend(std::coroutine_handle<> program) const {
  pe->await_number(program, const_cast<Number*>(this));
}

// -- For kernels --
// Arguments of a launch: global tensors and sizes, in the order the host gives them.
struct Args {
  const Index* sizes;
  Index many;
  Index size(Index i) const {
    if (i < 0 || i >= many) throw Misuse{"a size that the launch does not have"};
    return sizes[i];
  }
  Tensor tensor(std::uint32_t i) const { return {i}; }
};

// -- The simulator's own --
// What a kernel function returns; the simulator resumes it.
struct Program {
  struct promise_type {
    bool done = false;
    Program get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept {
      done = true;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
  std::coroutine_handle<promise_type> handle;
};
using Launch = Program (*)(Pe&, Args);

// -- For kernels --
inline Index least(Index a, Index b) { return a < b ? a : b; }
inline Index tiles(Index size, Index tile) { return (size + tile - 1) / tile; }

// The PEs that work at the same time on one run of `length` consecutive tiles, of `count` tiles
// that are dealt out in turn: tile = pe.id() + round * pe.count().
inline Group run_of(const Pe& pe, Index tile, Index length, Index count) {
  const Index round = tile - pe.id(), run = tile / length;
  Index first = run * length, last = least(first + length, count);
  if (first < round) first = round;
  last = least(last, round + pe.count());
  return {round * count + run, last - first};
}

// -- The simulator's own --
}  // namespace device

// -- For kernels --
// A launch is an exported function: KERNEL(name) { ... pe ... args ... }
// -- The simulator's own --
// (The coroutine itself has C++ linkage: older compilers clash on the names of its parts.)
#define KERNEL(name)                                                         \
  static device::Program program_##name(device::Pe& pe, device::Args args);  \
  extern "C" device::Program name(device::Pe& pe, device::Args args) {       \
    return program_##name(pe, args);                                         \
  }                                                                          \
  static device::Program program_##name([[maybe_unused]] device::Pe& pe,     \
                                        [[maybe_unused]] device::Args args)

#endif  // BACKENDS_SIM_NATIVE_DEVICE_DEVICE_H_
