#include "backends/sim/native/simulation.h"

#include <algorithm>
#include <memory>

#include "backends/sim/native/chip.h"
#include "backends/sim/native/deadlock.h"
#include "backends/sim/native/element.h"
#include "backends/sim/native/error.h"

namespace sim {
namespace {

// Gives each tensor its place in global memory; gives how much that is.
Index place_tensors(std::vector<TensorInfo>& tensors, const Spec& spec) {
  const Index align = std::max(spec.dram.interleave_bytes, spec.shared.block_bytes);
  Index end = 0;
  for (TensorInfo& tensor : tensors) {
    tensor.address = end;
    tensor.number = static_cast<std::size_t>(&tensor - tensors.data());
    end += (tensor.bytes + align - 1) / align * align;
  }
  return end;
}

void add_counters(Counters& sum, const Counters& more) {
  for (std::size_t i = 0; i < sum.engine.size(); ++i) {
    sum.engine[i].busy += more.engine[i].busy;
    sum.engine[i].stall += more.engine[i].stall;
    sum.engine[i].commands += more.engine[i].commands;
  }
  sum.issue_busy += more.issue_busy;
  sum.issue_stall += more.issue_stall;
  sum.local_bytes += more.local_bytes;
}

class Run {
 public:
  Run(const Spec& spec, const Options& options, Programs& programs,
      std::vector<TensorInfo> tensors)
      : tensors_(std::move(tensors)),
        chip_(spec, options, place_tensors(tensors_, spec), programs) {
    result_.elements.resize(chip_.elements.size());
  }

  void record() { chip_.trace = std::make_unique<Trace>(chip_.spec.clock_hz); }
  void launch(const LaunchCall& call);
  Result finish(const std::string& trace);

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<const TensorInfo*> arguments_;
  Chip chip_;
  Result result_;
};

void Run::launch(const LaunchCall& call) {
  arguments_.clear();
  for (const std::size_t i : call.tensors) {
    if (i >= tensors_.size())
      fail("launch of '", call.kernel, "' names tensor ", i, "; there are ", tensors_.size());
    arguments_.push_back(&tensors_[i]);
  }
  const bool first = result_.launch_cycles.empty();
  const Time start = first ? 0 : std::max(chip_.last_done, chip_.events.now()) +
                                     chip_.spec.launch_cycles;
  chip_.events.reset(start);
  chip_.groups.clear();
  chip_.races.begin_phase();
  chip_.barrier.expect(chip_.elements.size());
  chip_.last_done = start;
  const Spec& spec = chip_.spec;
  std::vector<Portion> commands = chip_.programs.launch(
      call, {spec.rows * spec.columns, spec.rows, spec.columns, chip_.options.max_cycles});
  for (std::size_t i = 0; i < chip_.elements.size(); ++i) {
    chip_.elements[i] = std::make_unique<Element>(chip_, static_cast<Index>(i), arguments_);
    chip_.elements[i]->run(std::move(commands[i]));
  }
  chip_.events.run(chip_.options.max_cycles, chip_.options.max_events);
  check_ended(chip_);
  for (std::size_t i = 0; i < chip_.elements.size(); ++i) {
    add_counters(result_.elements[i], chip_.elements[i]->counters());
    chip_.elements[i].reset();
  }
  result_.launch_cycles.push_back(chip_.last_done - start);
  result_.cycles = chip_.last_done;
}

Result Run::finish(const std::string& trace) {
  const auto in_cycles = [](Ticks t) { return static_cast<double>(t) / kTick; };
  result_.microseconds = static_cast<double>(result_.cycles) / chip_.spec.clock_hz * 1e6;
  result_.dram_read_bytes = chip_.memory.dram().read_bytes();
  result_.dram_write_bytes = chip_.memory.dram().write_bytes();
  result_.shared_read_bytes = chip_.memory.read_bytes();
  result_.shared_write_bytes = chip_.memory.write_bytes();
  result_.mesh_bytes = chip_.mesh.bytes();
  for (const Counters& element : result_.elements) result_.local_bytes += element.local_bytes;
  result_.dram_busy = in_cycles(chip_.memory.dram().busy());
  result_.shared_busy = in_cycles(chip_.memory.busy());
  result_.mesh_busiest = in_cycles(chip_.mesh.busiest());
  result_.events = chip_.events.count();
  if (chip_.trace) chip_.trace->write(trace);
  return std::move(result_);
}

}  // namespace

Result simulate(const Spec& spec, const Options& options, Programs& programs,
                const std::vector<LaunchCall>& launches, std::vector<TensorInfo> tensors,
                const std::string& trace) {
  check(spec);
  Run run(spec, options, programs, std::move(tensors));
  if (!trace.empty()) run.record();
  for (const LaunchCall& call : launches) {
    try {
      run.launch(call);
    } catch (const SimulationError& error) {
      throw SimulationError(text("launch '", call.kernel, "': ", error.what()));
    }
  }
  return run.finish(trace);
}

}  // namespace sim
