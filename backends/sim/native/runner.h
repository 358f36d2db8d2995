// The simulator's side of the process that runs a kernel's code.
#ifndef BACKENDS_SIM_NATIVE_RUNNER_H_
#define BACKENDS_SIM_NATIVE_RUNNER_H_

#include "backends/sim/native/frames.h"
#include "backends/sim/native/programs.h"

namespace sim {

class Runner final : public Programs {
 public:
  // `socket`: to a process in `serve_kernel`. Throws SimulationError where that cannot load its library;
  // all throw KernelEnded.
  explicit Runner(int socket);

  // Throws SimulationError where the library lacks the kernel.
  std::vector<Portion> launch(const LaunchCall& call, const Shape& shape) override;
  std::vector<Portion> more(const std::vector<Going>& programs) override;

 private:
  void ask(const Writer& request);
  std::vector<std::byte> answer();
  Portion portion();
  void require_good();  // the answer is empty, or says what is wrong

  Line line_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_RUNNER_H_
