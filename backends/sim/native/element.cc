#include "backends/sim/native/element.h"

#include <algorithm>

#include "backends/sim/native/cost.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {

std::string place(Index element, Time cycle, const std::string& what) {
  return text("PE ", element, " at cycle ", cycle, ": ", what);
}

Element::Element(Chip& chip, Index id, const std::vector<const TensorInfo*>& tensors)
    : chip_(chip), id_(id), tensors_(tensors),
      memory_(chip.spec.local_bytes, chip.options.functional,
              chip.options.functional && chip.options.check) {
  for (int unit = 0; unit < kUnits; ++unit)
    engines_.push_back(std::make_unique<Engine>(chip, *this, static_cast<Unit>(unit)));
}

void Element::run(Portion first) {
  stream_ = std::move(first.commands);
  asked_ = first.asked;
  core_time_ = chip_.events.now();
  for (const auto& engine : engines_) {
    switch (engine->unit()) {
      case Unit::dma_in: engine->start(dma_in(*engine)); break;
      case Unit::dma_out: engine->start(dma_out(*engine)); break;
      case Unit::mesh_out: engine->start(mesh_out(*engine)); break;
      case Unit::mesh_in: engine->start(mesh_in(*engine)); break;
      default: engine->start(compute(*engine)); break;
    }
  }
  chip_.events.at(core_time_,
                  {[](void* what) { static_cast<Element*>(what)->advance(); }, this});
}

void Element::advance() {
  if (wait_ != Wait::nothing)
    counters_.issue_stall += std::max<Time>(0, chip_.events.now() - core_time_);
  core_time_ = std::max(core_time_, chip_.events.now());
  wait_ = Wait::nothing;
  replay();
}

void Element::end() {
  charge_scalars();
  wait_ = Wait::ended;
  chip_.last_done = std::max(chip_.last_done, core_time_);
}

void Element::step_core() {
  if (must_wait_) fail("an earlier command was issued without co_await");
  charge_scalars();
  core_time_ += chip_.spec.issue_cycles;
  counters_.issue_busy += chip_.spec.issue_cycles;
}

void Element::scalars(Index operations) {
  constexpr Index kMostAtOnce = Index{1} << 48;
  if (operations < 0 || operations > kMostAtOnce - scalars_)
    fail("there are no ", operations, " scalar operations");
  scalars_ += operations;
  const Time most = chip_.options.max_cycles;
  if (most > 0 && core_time_ + scalars_ > most)
    throw SimulationError(
        place(id_, core_time_, "program: ") +
        text(scalars_, " scalar operations without a command; the limit is ", most, " cycles"));
}

void Element::charge_scalars() {
  core_time_ += std::max<Time>(0, scalars_ - kFreeScalars);
  scalars_ = 0;
}

void Element::park() {
  must_wait_ = false;
  if (wait_ == Wait::barrier) try_barrier();
}

void Element::room(Unit unit) {
  if (wait_ != Wait::queue || wait_unit_ != unit) return;
  chip_.events.at(chip_.events.now(),
                  {[](void* what) { static_cast<Element*>(what)->advance(); }, this});
}

// --- commands ---

void Element::enter(Command& command) {
  Walk& walk = command.walk;
  const int unit = static_cast<int>(command.unit);
  const bool outward = command.unit == Unit::dma_out || command.unit == Unit::mesh_out;
  for (int i = outward ? 0 : 1; i < walk.operands; ++i)
    if (!walk.view[i].constant) scoreboard_.enter_read(command.hazards, walk.view[i].slot);
  if (command.transfer.tensor != nullptr)
    for (int d = 0; d < command.transfer.tensor->rank; ++d)
      if (command.transfer.dimension[d].indirect)
        scoreboard_.enter_read(command.hazards, command.transfer.dimension[d].rows.view[0].slot);
  if (outward) return;
  scoreboard_.enter_write(command.hazards, walk.view[0].slot, unit);
  if (command.kind == Kind::scan)
    scoreboard_.enter_write(command.hazards, walk.view[2].slot, unit);
}

Event Element::completion(Command& command) {
  return {[](void* what) {
            auto& done = *static_cast<Command*>(what);
            done.element->complete(done);
          },
          &command};
}

void Element::complete(Command& command) {
  const Time now = chip_.events.now();
  const std::uint32_t watchers = scoreboard_.release(command.hazards);
  for (int unit = 0; unit < kUnits; ++unit)
    if (watchers >> unit & 1) engines_[static_cast<std::size_t>(unit)]->poke();
  if (chip_.trace) {
    const TensorInfo* tensor = command.transfer.tensor;
    std::string label = memory_.buffer_of(command.walk.view[0].slot).name;
    if (tensor != nullptr)
      label = command.unit == Unit::dma_in ? tensor->name + " to " + label
                                           : label + " to " + tensor->name;
    chip_.trace->add(command, id_, std::move(label), now);
  }
  chip_.last_done = std::max(chip_.last_done, now);
  chip_.commands.give_back(&command);
  if (--outstanding_ == 0 && wait_ == Wait::barrier) try_barrier();
}

std::string Element::describe(const Command& command) const {
  std::string what = name_of(command.kind);
  if (command.kind == Kind::map) what = text("map ", name_of(command.op));
  if (command.walk.operands == 0) return what;
  const bool outward = command.unit == Unit::dma_out || command.unit == Unit::mesh_out;
  what += text(outward ? " of '" : " to '", memory_.buffer_of(command.walk.view[0].slot).name, "'");
  return what;
}

// --- numbers and barriers ---

void Element::number() {
  const device::Tensor from{stream_.number<std::uint32_t>()};
  const device::List<Index> position = stream_.position();
  try {
    step_core();
    const TensorInfo& source = tensor(from);
    number_element_ = element_at(source, position);
    number_tensor_ = &source;
  } catch (const SimulationError& error) {
    throw SimulationError(place(id_, core_time_, "number: ") + error.what());
  }
}

Index Element::element_at(const TensorInfo& tensor, const device::List<Index>& position) const {
  if (!is_index(tensor.dtype))
    fail("'", tensor.name, "' is ", name_of(tensor.dtype), "; a number is i32 or i64");
  if (position.size != tensor.rank)
    fail("the position has ", position.size, " dimensions, '", tensor.name, "' has ", tensor.rank);
  Index element = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    if (position.at[d] < 0 || position.at[d] >= tensor.extent[d])
      fail("position ", position.at[d], " along dimension ", d, " of '", tensor.name,
           "' is out of range; its extent is ", tensor.extent[d]);
    element += position.at[d] * tensor.stride[d];
  }
  return element;
}

void Element::await_number() {
  if (number_tensor_ == nullptr) fail("a number is awaited that nothing asked for");
  wait_ = Wait::number;
  chip_.events.at(std::max(core_time_, chip_.events.now()), {request_number, this});
}

void Element::request_number(void* what) {
  auto& element = *static_cast<Element*>(what);
  const TensorInfo& tensor = *element.number_tensor_;
  const int size = size_of(tensor.dtype);
  const Index address = tensor.address + element.number_element_ * size;
  const Time now = element.chip_.events.now();
  Memory& memory = element.chip_.memory;
  Delivery* delivery = memory.open();
  delivery->receivers.push_back({static_cast<int>(element.id_), {number_ready, what}, now});
  memory.read(now, static_cast<int>(element.id_),
              {address, size, 1, sectors_of(address, size, element.chip_.spec.shared.block_bytes)},
              delivery);
  memory.close(delivery, now);
}

void Element::number_ready(void* what) {
  auto& element = *static_cast<Element*>(what);
  const TensorInfo& tensor = *element.number_tensor_;
  try {
    element.chip_.races.touch(tensor, element.number_element_, 1, Move::load, element.id_);
  } catch (const SimulationError& error) {
    throw SimulationError(place(element.id_, element.chip_.events.now(), "number: ") +
                          error.what());
  }
  read_integers(tensor.dtype, tensor.data + element.number_element_ * size_of(tensor.dtype), 1, 1,
                &element.number_);
  element.number_last_ = true;
  element.advance();
}

// --- numbers ahead ---

bool Element::tell_ahead(Index& number) {
  if (ahead_ || !asked_.waits || asked_.from.id >= tensors_.size()) return false;
  const TensorInfo& source = *tensors_[asked_.from.id];
  if (!source.input) return false;
  try {
    told_.element = element_at(source, asked_.position);
  } catch (const SimulationError&) {
    return false;  // and said in the cycle in which the program asks for it
  }
  told_from_ = &source;
  read_integers(source.dtype, source.data + told_.element * size_of(source.dtype), 1, 1,
                &told_.number);
  number = told_.number;
  return true;
}

void Element::refill() {
  if (ahead_) return use_ahead();
  // One question for all programs that can go on: each takes the way between the processes.
  std::vector<Element*> asking{this};
  std::vector<Going> going{{id_, number_}};
  for (const auto& other : chip_.elements) {
    Index number = 0;
    if (other.get() == this || !other->tell_ahead(number)) continue;
    asking.push_back(other.get());
    going.push_back({other->id_, number});
  }
  std::vector<Portion> next = chip_.programs.more(going);
  for (std::size_t i = 1; i < asking.size(); ++i) asking[i]->ahead_ = std::move(next[i]);
  stream_ = std::move(next[0].commands);
  asked_ = next[0].asked;
}

void Element::use_ahead() {
  const bool kept = number_last_ && number_tensor_ == told_from_ &&
                    number_element_ == told_.element && number_ == told_.number;
  if (!kept) fail("the program does not wait for the number that it says it waits for");
  stream_ = std::move(ahead_->commands);
  asked_ = ahead_->asked;
  ahead_.reset();
}

void Element::barrier() {
  step_core();
  wait_ = Wait::barrier;
  must_wait_ = true;
}

void Element::try_barrier() {
  if (outstanding_ > 0) return;
  chip_.events.at(std::max(core_time_, chip_.events.now()), {[](void* what) {
    auto& element = *static_cast<Element*>(what);
    Chip& chip = element.chip_;
    const Time go = chip.events.now() +
                    (chip.spec.rows + chip.spec.columns) * chip.spec.mesh.hop_cycles;
    const Event resume{[](void* w) { static_cast<Element*>(w)->advance(); }, what};
    if (chip.barrier.arrive(chip.events, resume, go)) chip.races.begin_phase();
  }, this});
}

Counters Element::counters() const {
  Counters all = counters_;
  for (const auto& engine : engines_)
    all.engine[static_cast<std::size_t>(engine->unit())] = engine->counters();
  return all;
}

}  // namespace sim
