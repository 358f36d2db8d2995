// The commands a program can give: checked and resolved here, when they are issued.
#include "backends/sim/native/cost.h"
#include "backends/sim/native/element.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {

template <class Build>
device::Issued Element::issue(Kind kind, Unit unit, Build build) {
  Command* command = chip_.commands.take();
  command->kind = kind;
  command->unit = unit;
  command->element = this;
  try {
    step_core();
    build(*command);
  } catch (const SimulationError& error) {
    throw SimulationError(place(id_, core_time_, describe(*command)) + ": " + error.what());
  }
  command->issued = core_time_;
  enter(*command);
  ++outstanding_;
  const bool room = engine(command->unit).push(command);
  if (!room) {
    must_wait_ = true;
    wait_ = Wait::queue;
    wait_unit_ = command->unit;
  }
  return {this, room};
}

namespace {

// Compute commands: how long, and how many bytes.
void finish(Command& command, const Spec& spec, Counters& counters) {
  command.occupied = occupancy(command, spec);
  counters.local_bytes += local_bytes(command);
}

void need_axes(const Walk& walk, int operand, const LocalMemory& memory) {
  for (int i = 0; i < walk.loops; ++i)
    if (walk.loop[i].extent > 1 && !(walk.loop[i].has >> operand & 1))
      fail("buffer '", memory.buffer_of(walk.view[operand].slot).name, "' lacks axis ",
           walk.loop[i].axis, " of the box; only reduce and matmul sum over an axis");
}

void same_class(const View& a, const View& b, const char* what) {
  if (is_float(a.dtype) != is_float(b.dtype))
    fail("dtypes ", name_of(a.dtype), " and ", name_of(b.dtype), " do not mix in ", what,
         "; convert with copy");
}

void need_integer(const View& view, const char* what) {
  if (!is_index(view.dtype)) fail(what, " are ", name_of(view.dtype), "; they must be i32 or i64");
}

bool special(Op op) { return op >= Op::exp; }

// Programs cannot make such values by names; nothing here relies on that.
void check_op(Op op) {
  if (op > Op::atan2) fail("there is no operation ", static_cast<int>(op));
}

void check_reduction(Reduction reduction) {
  if (reduction > Reduction::prod) fail("there is no reduction ", static_cast<int>(reduction));
}

int operands_of(Op op) {
  if (op <= Op::bit_not) return 1;
  if (op == Op::select || op == Op::fma) return 3;
  return op < Op::exp || op == Op::pow || op == Op::atan2 ? 2 : 1;
}

void check_mix(Op op, const Walk& walk) {
  const View* number = nullptr;  // the first that is not b8
  for (int i = op == Op::select ? 2 : 1; i < walk.operands; ++i) {
    const View& view = walk.view[i];
    if (view.constant || view.dtype == Dtype::b8) continue;
    if (number == nullptr) {
      number = &view;
    } else {
      same_class(*number, view, "one map");
    }
  }
  const View& choice = walk.view[1];
  if (op == Op::select && !choice.constant && is_float(choice.dtype) && number != nullptr)
    same_class(choice, *number, "one map");
}

}  // namespace

const TensorInfo& Element::tensor(device::Tensor handle) const {
  if (handle.id >= tensors_.size())
    fail("tensor ", handle.id, " is used; the launch has ", tensors_.size());
  return *tensors_[handle.id];
}

device::Buffer Element::buffer(const char* name, Dtype dtype, Box box, Index stages) {
  try {
    if (dtype > Dtype::u8) fail("there is no dtype ", static_cast<int>(dtype));
    const device::Buffer made = memory_.add(name, dtype, box, stages);
    scoreboard_.grow(made.stages);
    return made;
  } catch (const SimulationError& error) {
    throw SimulationError(place(id_, core_time_, error.what()));
  }
}

device::Issued Element::load(const Tile& to, device::Tensor from, const device::Region& region,
                             device::Outside outside) {
  return issue(Kind::load, Unit::dma_in, [&](Command& c) {
    resolve(c.transfer, tensor(from), region, to, outside, memory_, c.walk);
  });
}

device::Issued Element::load_shared(const Tile& to, device::Tensor from,
                                    const device::Region& region, device::Group group,
                                    device::Outside outside) {
  return issue(Kind::load_shared, Unit::dma_in, [&](Command& c) {
    resolve(c.transfer, tensor(from), region, to, outside, memory_, c.walk);
    c.group = group;
    if (group.size < 1 || group.size > count())
      fail("group ", group.id, " has size ", group.size, "; it must be 1 .. ", count());
  });
}

device::Issued Element::store(device::Tensor to, const device::Region& region, const Tile& from) {
  return issue(Kind::store, Unit::dma_out, [&](Command& c) {
    resolve(c.transfer, tensor(to), region, from, device::kRefuse, memory_, c.walk);
  });
}

device::Issued Element::add(device::Tensor to, const device::Region& region, const Tile& from) {
  return issue(Kind::add, Unit::dma_out, [&](Command& c) {
    resolve(c.transfer, tensor(to), region, from, device::kRefuse, memory_, c.walk);
    if (from.dtype == Dtype::b8) fail("b8 does not add");
  });
}

void Element::check_peer(Index peer) const {
  if (peer < 0 || peer >= count()) fail("PE ", peer, " does not exist; 0 .. ", count() - 1);
}

device::Issued Element::send(Index to_pe, const Tile& from, const Box& box) {
  return issue(Kind::send, Unit::mesh_out, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, from, memory_);
    check_peer(to_pe);
    c.peer = to_pe;
  });
}

device::Issued Element::receive(const Tile& to, Index from_pe, const Box& box) {
  return issue(Kind::receive, Unit::mesh_in, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    check_peer(from_pe);
    c.peer = from_pe;
  });
}

device::Issued Element::receive(const Tile& to, Index from_pe, const Box& box, Reduction reduction) {
  return issue(Kind::receive, Unit::mesh_in, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    check_peer(from_pe);
    check_reduction(reduction);
    c.peer = from_pe;
    c.reduction = reduction;
    c.reductions = true;
  });
}

device::Issued Element::map(Op op, const Tile& to, device::Operands from, const Box& box) {
  return issue(Kind::map, special(op) ? Unit::special : Unit::vector, [&](Command& c) {
    check_op(op);
    c.op = op;
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    if (from.size != operands_of(op))
      fail("takes ", operands_of(op), " operands, got ", from.size);
    for (int i = 0; i < from.size; ++i) {
      if (from.at[i].constant) {
        add_constant(c.walk, from.at[i].value);
      } else {
        add_tile(c.walk, from.at[i].tile, memory_);
      }
    }
    need_axes(c.walk, 0, memory_);
    check_mix(op, c.walk);
    finish(c, chip_.spec, counters_);
    c.walk.order_by_result();
  });
}

device::Issued Element::fill(const Tile& to, double value, const Box& box) {
  return issue(Kind::fill, Unit::vector, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    c.value = value;
    finish(c, chip_.spec, counters_);
    c.walk.order_by_result();
  });
}

device::Issued Element::iota(const Tile& to, Axis axis, Index start, const Box& box) {
  return issue(Kind::iota, Unit::vector, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    c.axis_loop = c.walk.find(axis);
    if (c.axis_loop == c.walk.loops) fail("the box lacks axis ", axis);
    c.start = start;
    finish(c, chip_.spec, counters_);
  });
}

device::Issued Element::bucketize(const Tile& to, const Tile& values, const Tile& borders,
                                  Axis axis, Index count, const Box& box) {
  return issue(Kind::bucketize, Unit::vector, [&](Command& c) {
    start_walk(c.walk, box);
    if (c.walk.find(axis) < c.walk.loops) fail("the box has axis ", axis, " of the borders");
    if (count < 0) fail("count ", count, " is negative");
    add_tile(c.walk, to, memory_);
    add_tile(c.walk, values, memory_);
    c.axis_stride = add_tile(c.walk, borders, memory_, axis, count);
    need_axes(c.walk, 0, memory_);
    need_integer(c.walk.view[0], "bucket numbers");
    same_class(c.walk.view[1], c.walk.view[2], "bucketize");
    c.count = count;
    finish(c, chip_.spec, counters_);
  });
}

device::Issued Element::take(const Tile& to, const Tile& table, Axis axis, Index count,
                             const Tile& at, const Box& box) {
  return issue(Kind::take, Unit::vector, [&](Command& c) {
    start_walk(c.walk, box);
    if (c.walk.find(axis) < c.walk.loops) fail("the box has axis ", axis, " of the table");
    add_tile(c.walk, to, memory_);
    c.axis_stride = add_tile(c.walk, table, memory_, axis, count);
    add_tile(c.walk, at, memory_);
    need_axes(c.walk, 0, memory_);
    need_integer(c.walk.view[2], "positions");
    same_class(c.walk.view[0], c.walk.view[1], "take");
    c.count = count;
    finish(c, chip_.spec, counters_);
  });
}

device::Issued Element::reduce(Reduction reduction, const Tile& to, const Tile& from, const Box& box,
                               bool accumulate) {
  return issue(Kind::reduce, Unit::reduction, [&](Command& c) {
    check_reduction(reduction);
    c.reduction = reduction;
    c.accumulate = accumulate;
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    add_tile(c.walk, from, memory_);
    same_class(c.walk.view[0], c.walk.view[1], "reduce");
    finish(c, chip_.spec, counters_);
  });
}

device::Issued Element::scan(Reduction reduction, const Tile& to, const Tile& from, Axis axis,
                             const Tile& carry, const Box& box) {
  return issue(Kind::scan, Unit::reduction, [&](Command& c) {
    check_reduction(reduction);
    c.reduction = reduction;
    start_walk(c.walk, box);
    c.axis_loop = c.walk.find(axis);
    if (c.axis_loop == c.walk.loops) fail("the box lacks axis ", axis);
    add_tile(c.walk, to, memory_);
    add_tile(c.walk, from, memory_);
    add_tile(c.walk, carry, memory_);
    need_axes(c.walk, 0, memory_);
    const Loop& along = c.walk.loop[c.axis_loop];
    if (along.has >> 2 & 1) fail("the carry has axis ", axis, " of the scan");
    for (int i = 0; i < c.walk.loops; ++i)
      if (i != c.axis_loop && c.walk.loop[i].extent > 1 && !(c.walk.loop[i].has >> 2 & 1))
        fail("the carry lacks axis ", c.walk.loop[i].axis, " of the box");
    same_class(c.walk.view[0], c.walk.view[1], "scan");
    same_class(c.walk.view[1], c.walk.view[2], "scan");
    finish(c, chip_.spec, counters_);
  });
}

device::Issued Element::matmul(const Tile& to, const Tile& a, const Tile& b, const Box& box,
                               bool accumulate) {
  return issue(Kind::matmul, Unit::matrix, [&](Command& c) {
    c.accumulate = accumulate;
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    add_tile(c.walk, a, memory_);
    add_tile(c.walk, b, memory_);
    if (a.dtype != b.dtype)
      fail("the factors are ", name_of(a.dtype), " and ", name_of(b.dtype),
           "; they must have one dtype");
    const Dtype result = is_float(a.dtype) ? Dtype::f32 : Dtype::i32;
    if (to.dtype != result)
      fail("the result is ", name_of(to.dtype), "; for factors of ", name_of(a.dtype),
           " it must be ", name_of(result));
    finish(c, chip_.spec, counters_);
  });
}

}  // namespace sim
