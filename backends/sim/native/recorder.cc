#include "backends/sim/native/recorder.h"

namespace sim {
namespace {

constexpr std::size_t kEnough = 16 << 10;   // bytes, at which the simulator goes on
constexpr std::size_t kTooMuch = 4 << 20;   // bytes that no program records without awaiting

struct Stopped {};  // ends a program whose end would never come

}  // namespace

Recorder::~Recorder() {
  if (program_.handle) program_.handle.destroy();
}

void Recorder::run(device::Index number) {
  out_.clear();
  if (ended_) return;
  if (waited_ != nullptr) waited_->value = number;
  waited_ = nullptr;
  try {
    while (waited_ == nullptr && !program_.handle.done() && out_.size() < kEnough)
      program_.handle.resume();
    if (!program_.handle.done()) return;
    begin(Record::ended);
  } catch (const device::Misuse& misuse) {
    begin(Record::misused);
    out_.put(std::string_view(misuse.what));
  } catch (const Stopped&) {
    begin(Record::awaited);  // behind what the simulator will refuse
  }
  ended_ = true;
}

void Recorder::begin(Record record) {
  if (scalars_ != 0) {
    out_.put(Record::scalars);
    out_.put(scalars_);
    scalars_ = 0;
  }
  out_.put(record);
}

void Recorder::next(Record record) {
  if (out_.size() > kTooMuch) throw Stopped{};
  begin(record);
}

template <class... Parts>
device::Issued Recorder::command(Record record, const Parts&... parts) {
  next(record);
  (out_.put(parts), ...);
  return {this, false};
}

void Recorder::park(std::coroutine_handle<>) { begin(Record::awaited); }

void Recorder::await_number(std::coroutine_handle<>, device::Number* into) {
  begin(Record::number_awaited);
  waited_ = into;
}

void Recorder::scalars(device::Index operations) {
  scalars_ += operations;
  if (shape_.most_scalars > 0 && scalars_ > shape_.most_scalars) throw Stopped{};
}

device::Buffer Recorder::buffer(const char* name, device::Dtype dtype, device::Box box,
                                device::Index stages) {
  next(Record::buffer);
  out_.put(std::string_view(name));
  out_.put(dtype);
  out_.put(box);
  out_.put(stages);
  // As the simulator numbers them, which refuses the rest.
  device::Buffer made;
  made.id = buffers_++;
  made.first_slot = slots_;
  made.stages = static_cast<std::uint32_t>(stages);
  slots_ += made.stages;
  made.shape.slot = made.first_slot;
  made.shape.dtype = dtype;
  made.shape.axes.size = box.size;
  std::uint64_t stride = 1;
  for (int i = box.size - 1; i >= 0; --i) {
    made.shape.axes.at[i] = {box.at[i].axis, static_cast<device::Index>(stride)};
    stride *= static_cast<std::uint64_t>(box.at[i].extent);
  }
  return made;
}

device::Issued Recorder::load(const device::Tile& to, device::Tensor from,
                              const device::Region& region, device::Outside outside) {
  return command(Record::load, to, from.id, region, outside);
}

device::Issued Recorder::load_shared(const device::Tile& to, device::Tensor from,
                                     const device::Region& region, device::Group group,
                                     device::Outside outside) {
  return command(Record::load_shared, to, from.id, region, group.id, group.size, outside);
}

device::Number Recorder::number(device::Tensor from, device::List<device::Index> position) {
  next(Record::number);
  out_.put(from.id);
  out_.put(static_cast<std::uint8_t>(position.size));
  for (const device::Index at : position) out_.put(at);
  asked_from_ = from;
  asked_at_ = position;
  return {this};
}

void Recorder::put_asked(Writer& into) const {
  into.put(waited_ != nullptr);
  if (waited_ == nullptr) return;
  into.put(asked_from_.id);
  into.put(asked_at_);
}

device::Issued Recorder::store(device::Tensor to, const device::Region& region,
                               const device::Tile& from) {
  return command(Record::store, to.id, region, from);
}

device::Issued Recorder::add(device::Tensor to, const device::Region& region,
                             const device::Tile& from) {
  return command(Record::add, to.id, region, from);
}

device::Issued Recorder::send(device::Index to_pe, const device::Tile& from,
                              const device::Box& box) {
  return command(Record::send, to_pe, from, box);
}

device::Issued Recorder::receive(const device::Tile& to, device::Index from_pe,
                                 const device::Box& box) {
  return command(Record::receive, to, from_pe, box);
}

device::Issued Recorder::receive(const device::Tile& to, device::Index from_pe,
                                 const device::Box& box, device::Reduction reduction) {
  return command(Record::receive_reduced, to, from_pe, box, reduction);
}

device::Issued Recorder::map(device::Op op, const device::Tile& to, device::Operands from,
                             const device::Box& box) {
  return command(Record::map, op, to, from, box);
}

device::Issued Recorder::fill(const device::Tile& to, double value, const device::Box& box) {
  return command(Record::fill, to, value, box);
}

device::Issued Recorder::iota(const device::Tile& to, device::Axis axis, device::Index start,
                              const device::Box& box) {
  return command(Record::iota, to, axis, start, box);
}

device::Issued Recorder::bucketize(const device::Tile& to, const device::Tile& values,
                                   const device::Tile& borders, device::Axis axis,
                                   device::Index count, const device::Box& box) {
  return command(Record::bucketize, to, values, borders, axis, count, box);
}

device::Issued Recorder::take(const device::Tile& to, const device::Tile& table,
                              device::Axis axis, device::Index count, const device::Tile& at,
                              const device::Box& box) {
  return command(Record::take, to, table, axis, count, at, box);
}

device::Issued Recorder::reduce(device::Reduction reduction, const device::Tile& to,
                                const device::Tile& from, const device::Box& box,
                                bool accumulate) {
  return command(Record::reduce, reduction, to, from, box, accumulate);
}

device::Issued Recorder::scan(device::Reduction reduction, const device::Tile& to,
                              const device::Tile& from, device::Axis axis,
                              const device::Tile& carry, const device::Box& box) {
  return command(Record::scan, reduction, to, from, axis, carry, box);
}

device::Issued Recorder::matmul(const device::Tile& to, const device::Tile& a,
                                const device::Tile& b, const device::Box& box, bool accumulate) {
  return command(Record::matmul, to, a, b, box, accumulate);
}

device::Issued Recorder::barrier() { return command(Record::barrier); }

}  // namespace sim
