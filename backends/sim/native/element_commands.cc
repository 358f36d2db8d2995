// The commands a program can give: checked and resolved here, when they are issued.
#include "backends/sim/native/cost.h"
#include "backends/sim/native/element.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {

template <class Build>
void Element::issue(Kind kind, Unit unit, Build build) {
  Command* command = chip_.commands.take();
  command->kind = kind;
  command->unit = unit;
  command->element = this;
  try {
    step_core();
    build(*command);
    const Time most = chip_.options.max_cycles;
    if (most > 0 && command->occupied > most)
      fail("takes ", command->occupied, " cycles; the limit is ", most);
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

void Element::buffer() {
  const std::string name = stream_.text();
  const Dtype dtype = stream_.dtype();
  const Box box = stream_.box();
  const auto stages = stream_.number<Index>();
  try {
    scoreboard_.grow(memory_.add(name.c_str(), dtype, box, stages).stages);
  } catch (const SimulationError& error) {
    throw SimulationError(place(id_, core_time_, error.what()));
  }
}

void Element::load() {
  const Tile to = stream_.tile();
  const device::Tensor from{stream_.number<std::uint32_t>()};
  OwnedRegion owned;
  stream_.region(owned);
  const device::Outside outside = stream_.outside();
  issue(Kind::load, Unit::dma_in, [&](Command& c) {
    resolve(c.transfer, tensor(from), owned.region, to, outside, memory_, c.walk);
  });
}

void Element::load_shared() {
  const Tile to = stream_.tile();
  const device::Tensor from{stream_.number<std::uint32_t>()};
  OwnedRegion owned;
  stream_.region(owned);
  device::Group group;
  group.id = stream_.number<Index>();
  group.size = stream_.number<Index>();
  const device::Outside outside = stream_.outside();
  issue(Kind::load_shared, Unit::dma_in, [&](Command& c) {
    resolve(c.transfer, tensor(from), owned.region, to, outside, memory_, c.walk);
    c.group = group;
    if (group.size < 1 || group.size > count())
      fail("group ", group.id, " has size ", group.size, "; it must be 1 .. ", count());
  });
}

void Element::store(Kind kind) {
  const device::Tensor to{stream_.number<std::uint32_t>()};
  OwnedRegion owned;
  stream_.region(owned);
  const Tile from = stream_.tile();
  issue(kind, Unit::dma_out, [&](Command& c) {
    resolve(c.transfer, tensor(to), owned.region, from, device::kRefuse, memory_, c.walk);
    if (kind == Kind::add && from.dtype == Dtype::b8) fail("b8 does not add");
  });
}

void Element::check_peer(Index peer) const {
  if (peer < 0 || peer >= count()) fail("PE ", peer, " does not exist; 0 .. ", count() - 1);
}

void Element::send() {
  const auto to_pe = stream_.number<Index>();
  const Tile from = stream_.tile();
  const Box box = stream_.box();
  issue(Kind::send, Unit::mesh_out, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, from, memory_);
    check_peer(to_pe);
    c.peer = to_pe;
  });
}

void Element::receive(bool reduced) {
  const Tile to = stream_.tile();
  const auto from_pe = stream_.number<Index>();
  const Box box = stream_.box();
  const Reduction reduction = reduced ? stream_.value_of<Reduction>() : Reduction::sum;
  issue(Kind::receive, Unit::mesh_in, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    check_peer(from_pe);
    check_reduction(reduction);
    c.peer = from_pe;
    c.reduction = reduction;
    c.reductions = reduced;
  });
}

void Element::map() {
  const auto op = stream_.value_of<Op>();
  const Tile to = stream_.tile();
  const device::Operands from = stream_.operands();
  const Box box = stream_.box();
  issue(Kind::map, special(op) ? Unit::special : Unit::vector, [&](Command& c) {
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

void Element::fill() {
  const Tile to = stream_.tile();
  const auto value = stream_.number<double>();
  const Box box = stream_.box();
  issue(Kind::fill, Unit::vector, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    c.value = value;
    finish(c, chip_.spec, counters_);
    c.walk.order_by_result();
  });
}

void Element::iota() {
  const Tile to = stream_.tile();
  const auto axis = stream_.number<Axis>();
  const auto start = stream_.number<Index>();
  const Box box = stream_.box();
  issue(Kind::iota, Unit::vector, [&](Command& c) {
    start_walk(c.walk, box);
    add_tile(c.walk, to, memory_);
    need_axes(c.walk, 0, memory_);
    c.axis_loop = c.walk.find(axis);
    if (c.axis_loop == c.walk.loops) fail("the box lacks axis ", axis);
    c.start = start;
    finish(c, chip_.spec, counters_);
  });
}

void Element::bucketize() {
  const Tile to = stream_.tile();
  const Tile values = stream_.tile();
  const Tile borders = stream_.tile();
  const auto axis = stream_.number<Axis>();
  const auto count = stream_.number<Index>();
  const Box box = stream_.box();
  issue(Kind::bucketize, Unit::vector, [&](Command& c) {
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

void Element::take() {
  const Tile to = stream_.tile();
  const Tile table = stream_.tile();
  const auto axis = stream_.number<Axis>();
  const auto count = stream_.number<Index>();
  const Tile at = stream_.tile();
  const Box box = stream_.box();
  issue(Kind::take, Unit::vector, [&](Command& c) {
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

void Element::reduce() {
  const auto reduction = stream_.value_of<Reduction>();
  const Tile to = stream_.tile();
  const Tile from = stream_.tile();
  const Box box = stream_.box();
  const bool accumulate = stream_.flag();
  issue(Kind::reduce, Unit::reduction, [&](Command& c) {
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

void Element::scan() {
  const auto reduction = stream_.value_of<Reduction>();
  const Tile to = stream_.tile();
  const Tile from = stream_.tile();
  const auto axis = stream_.number<Axis>();
  const Tile carry = stream_.tile();
  const Box box = stream_.box();
  issue(Kind::scan, Unit::reduction, [&](Command& c) {
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

void Element::matmul() {
  const Tile to = stream_.tile();
  const Tile a = stream_.tile();
  const Tile b = stream_.tile();
  const Box box = stream_.box();
  const bool accumulate = stream_.flag();
  issue(Kind::matmul, Unit::matrix, [&](Command& c) {
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

void Element::replay() {
  while (true) {
    if (stream_.empty()) refill();
    number_last_ = false;
    const Record record = stream_.record();
    switch (record) {
      case Record::awaited:
        if (!must_wait_) break;
        return park();
      case Record::number_awaited: return await_number();
      case Record::ended: return end();
      case Record::misused:
        throw SimulationError(place(id_, core_time_, "program: ") + stream_.text());
      default: replay_command(record);
    }
  }
}

void Element::replay_command(Record record) {
  switch (record) {
    case Record::buffer: return buffer();
    case Record::load: return load();
    case Record::load_shared: return load_shared();
    case Record::number: return number();
    case Record::store: return store(Kind::store);
    case Record::add: return store(Kind::add);
    case Record::send: return send();
    case Record::receive: return receive(false);
    case Record::receive_reduced: return receive(true);
    case Record::map: return map();
    case Record::fill: return fill();
    case Record::iota: return iota();
    case Record::bucketize: return bucketize();
    case Record::take: return take();
    case Record::reduce: return reduce();
    case Record::scan: return scan();
    case Record::matmul: return matmul();
    case Record::barrier: return barrier();
    default: return scalars(stream_.number<Index>());
  }
}

}  // namespace sim
