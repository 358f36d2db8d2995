// One processing element: its control core, its engines, its local memory.
#ifndef BACKENDS_SIM_NATIVE_ELEMENT_H_
#define BACKENDS_SIM_NATIVE_ELEMENT_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/sim/native/chip.h"
#include "backends/sim/native/counters.h"
#include "backends/sim/native/engine.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/local_memory.h"
#include "backends/sim/native/scoreboard.h"

namespace sim {

// The control core runs ahead of the engines' clock until a queue is full or a result is needed;
// each command carries the cycle in which it was issued.
// Scalar operations between two commands that take no time: the control core issues them beside
// commands. Each further one takes a cycle.
inline constexpr Time kFreeScalars = 64;

class Element final : public device::Pe {
 public:
  // What the program waits for.
  enum class Wait { nothing, queue, number, barrier, ended };

  // `tensors` are those of the launch, in the order of its arguments.
  Element(Chip& chip, Index id, const std::vector<const TensorInfo*>& tensors);
  ~Element() override;

  // Starts a program; it begins in this cycle.
  void run(device::Program program);

  Index id() const override { return id_; }
  Index count() const override { return chip_.spec.rows * chip_.spec.columns; }
  Index rows() const override { return chip_.spec.rows; }
  Index columns() const override { return chip_.spec.columns; }
  device::Buffer buffer(const char* name, Dtype dtype, Box box, Index stages) override;
  device::Issued load(const Tile& to, device::Tensor from, const device::Region& region,
                      device::Outside outside) override;
  device::Issued load_shared(const Tile& to, device::Tensor from, const device::Region& region,
                             device::Group group, device::Outside outside) override;
  device::Number number(device::Tensor from, device::List<Index> position) override;
  device::Issued store(device::Tensor to, const device::Region& region,
                       const Tile& from) override;
  device::Issued add(device::Tensor to, const device::Region& region, const Tile& from) override;
  device::Issued send(Index to_pe, const Tile& from, const Box& box) override;
  device::Issued receive(const Tile& to, Index from_pe, const Box& box) override;
  device::Issued receive(const Tile& to, Index from_pe, const Box& box, Reduction reduction) override;
  device::Issued map(Op op, const Tile& to, device::Operands from, const Box& box) override;
  device::Issued fill(const Tile& to, double value, const Box& box) override;
  device::Issued iota(const Tile& to, Axis axis, Index start, const Box& box) override;
  device::Issued bucketize(const Tile& to, const Tile& values, const Tile& borders, Axis axis,
                           Index count, const Box& box) override;
  device::Issued take(const Tile& to, const Tile& table, Axis axis, Index count, const Tile& at,
                      const Box& box) override;
  device::Issued reduce(Reduction reduction, const Tile& to, const Tile& from, const Box& box,
                        bool accumulate) override;
  device::Issued scan(Reduction reduction, const Tile& to, const Tile& from, Axis axis, const Tile& carry,
                      const Box& box) override;
  device::Issued matmul(const Tile& to, const Tile& a, const Tile& b, const Box& box,
                        bool accumulate) override;
  device::Issued barrier() override;
  void scalars(Index operations) override;

  // For the engines.
  LocalMemory& memory() { return memory_; }
  Scoreboard& scoreboard() { return scoreboard_; }
  Engine& engine(Unit unit) { return *engines_[static_cast<std::size_t>(unit)]; }
  const Engine& engine(Unit unit) const { return *engines_[static_cast<std::size_t>(unit)]; }
  void room(Unit unit);
  void complete(Command& command);
  static Event completion(Command& command);
  // Runs `work`; an error gets the place where it happened.
  template <class Work>
  void at_command(const Command& command, Work work);

  // For reports.
  Wait wait() const { return wait_; }
  Unit waits_for_unit() const { return wait_unit_; }
  std::int64_t outstanding() const { return outstanding_; }
  Time core_time() const { return core_time_; }
  Counters counters() const;
  // "load to 'x'": the command and the buffer of its first operand.
  std::string describe(const Command& command) const;

 protected:
  void park(std::coroutine_handle<> program) override;
  void await_number(std::coroutine_handle<> program, device::Number* into) override;

 private:
  // Makes a command: `build` fills it in; errors get the place where they happened.
  template <class Build>
  device::Issued issue(Kind kind, Unit unit, Build build);
  const TensorInfo& tensor(device::Tensor handle) const;
  void check_peer(Index peer) const;
  void enter(Command& command);
  void step_core();
  void charge_scalars();
  void advance();
  void try_barrier();
  static void request_number(void* what);
  static void number_ready(void* what);

  Chip& chip_;
  Index id_;
  const std::vector<const TensorInfo*>& tensors_;
  LocalMemory memory_;
  Scoreboard scoreboard_;
  std::vector<std::unique_ptr<Engine>> engines_;
  device::Program program_{};
  Wait wait_ = Wait::nothing;
  Unit wait_unit_ = Unit::dma_in;
  bool must_wait_ = false;  // the last command found no room, and the program must wait
  Time core_time_ = 0;
  Time scalars_ = 0;  // operations since the last command
  std::int64_t outstanding_ = 0;
  const TensorInfo* number_tensor_ = nullptr;
  Index number_element_ = 0;
  device::Number* number_ = nullptr;
  Counters counters_;
};

// "PE 3 at cycle 120: map(add) to 'y'"
std::string place(Index element, Time cycle, const std::string& what);

template <class Work>
void Element::at_command(const Command& command, Work work) {
  try {
    work();
  } catch (const SimulationError& error) {
    throw SimulationError(place(id_, chip_.events.now(), describe(command)) + ": " + error.what());
  }
}

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_ELEMENT_H_
