// Where the commands of a kernel's programs come from.
#ifndef BACKENDS_SIM_NATIVE_PROGRAMS_H_
#define BACKENDS_SIM_NATIVE_PROGRAMS_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/sim/native/recorder.h"
#include "backends/sim/native/tensor.h"

namespace sim {

using device::Index;

struct LaunchCall {
  std::string kernel;
  std::vector<std::size_t> tensors;  // of the run, in the order of the kernel's arguments
  std::vector<Index> sizes;
};

// Commands of a program, and what it waits for behind them.
struct Portion {
  Reader commands;
  Asked asked;
};

// That a program goes on. `number`: what it waited for, if it did.
struct Going {
  Index element;
  Index number;
};

class Programs {
 public:
  virtual ~Programs() = default;

  // Starts a program for each processing element; gives the first commands of each.
  virtual std::vector<Portion> launch(const LaunchCall& call, const Shape& shape) = 0;
  // The next commands of some programs, in their order.
  virtual std::vector<Portion> more(const std::vector<Going>& programs) = 0;
};

// The process that runs a kernel's code has ended, or says what is no answer.
class KernelEnded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_PROGRAMS_H_
