// The one error of the simulator: what a program did that the machine refuses.
#ifndef BACKENDS_SIM_NATIVE_ERROR_H_
#define BACKENDS_SIM_NATIVE_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>

namespace sim {

class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A field of the machine's description that is missing or wrong.
class SpecError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw SimulationError(text(parts...));
}

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_ERROR_H_
