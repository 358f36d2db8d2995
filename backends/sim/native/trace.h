// A timeline of the run in the Chrome trace format, which Perfetto reads too.
#ifndef BACKENDS_SIM_NATIVE_TRACE_H_
#define BACKENDS_SIM_NATIVE_TRACE_H_

#include <string>
#include <vector>

#include "backends/sim/native/command.h"

namespace sim {

// A processing element is a process of the trace, an engine a thread; times are microseconds.
class Trace {
 public:
  explicit Trace(double clock_hz) : microseconds_(1e6 / clock_hz) {}

  // `label` says what the command works on; `done` is when its result was there.
  void add(const Command& command, Index element, std::string label, Time done);
  // Throws SimulationError if the file cannot be written.
  void write(const std::string& path) const;

 private:
  struct Span {
    Index element;
    Unit unit;
    const char* name;
    std::string label;
    Time start;
    Time occupied;
    Time done;
  };
  double microseconds_;  // a cycle
  std::vector<Span> spans_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_TRACE_H_
