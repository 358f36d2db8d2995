// One processing element: its control core, its engines, its local memory.
#ifndef BACKENDS_SIM_NATIVE_ELEMENT_H_
#define BACKENDS_SIM_NATIVE_ELEMENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/sim/native/chip.h"
#include "backends/sim/native/counters.h"
#include "backends/sim/native/engine.h"
#include "backends/sim/native/error.h"
#include "backends/sim/native/local_memory.h"
#include "backends/sim/native/scoreboard.h"
#include "backends/sim/native/stream.h"

namespace sim {

// Scalar operations between two commands that take no time: the control core issues them beside
// commands. Each further one takes a cycle.
inline constexpr Time kFreeScalars = 64;

// The control core runs ahead of the engines' clock until a queue is full or a result is needed;
// each command carries the cycle in which it was issued. What the core does comes as a stream of
// commands (`stream.h`), whose values are all checked here.
class Element final {
 public:
  // What the program waits for.
  enum class Wait { nothing, queue, number, barrier, ended };

  // `tensors` are those of the launch, in the order of its arguments.
  Element(Chip& chip, Index id, const std::vector<const TensorInfo*>& tensors);
  // Starts a program, by the first of its commands; it begins in this cycle.
  void run(Portion first);

  Index id() const { return id_; }
  Index count() const { return chip_.spec.rows * chip_.spec.columns; }

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

 private:
  // Makes a command: `build` fills it in; errors get the place where they happened.
  template <class Build>
  void issue(Kind kind, Unit unit, Build build);
  const TensorInfo& tensor(device::Tensor handle) const;
  void check_peer(Index peer) const;
  // Takes commands from the stream until the program waits for one, or ends.
  void replay();
  void refill();
  // The number that the program will wait for, where nothing can change it any more: an input's, which is
  // told once. The program goes on ahead then, and `use_ahead` holds it to its word.
  bool tell_ahead(Index& number);
  void use_ahead();
  Index element_at(const TensorInfo& tensor, const device::List<Index>& position) const;
  void replay_command(Record record);
  void buffer();
  void load();
  void load_shared();
  void store(Kind kind);
  void send();
  void receive(bool reduced);
  void map();
  void fill();
  void iota();
  void bucketize();
  void take();
  void reduce();
  void scan();
  void matmul();
  void number();
  void barrier();
  void scalars(Index operations);
  void park();
  void await_number();
  void end();
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
  Reader stream_;
  Wait wait_ = Wait::nothing;
  Unit wait_unit_ = Unit::dma_in;
  bool must_wait_ = false;  // the last command found no room, and the program must wait
  Time core_time_ = 0;
  Time scalars_ = 0;  // operations since the last command
  std::int64_t outstanding_ = 0;
  const TensorInfo* number_tensor_ = nullptr;
  Index number_element_ = 0;
  Index number_ = 0;  // the last that was read
  bool number_last_ = false;  // nothing has come since
  Asked asked_;                // behind the commands of the stream
  std::optional<Portion> ahead_;  // what follows, if the program was told that number
  Going told_{};                // the element of the tensor, and the number
  const TensorInfo* told_from_ = nullptr;
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
