// A thing of limited bandwidth that serves one transfer after another.
#ifndef BACKENDS_SIM_NATIVE_PIPE_H_
#define BACKENDS_SIM_NATIVE_PIPE_H_

#include <algorithm>
#include <cmath>

#include "backends/sim/native/spec.h"

namespace sim {

// Time in fractions of a cycle, so that rates need not divide.
using Ticks = std::int64_t;
inline constexpr int kTickBits = 12;
inline constexpr Ticks kTick = Ticks{1} << kTickBits;

inline Ticks ticks(Time cycles) { return cycles << kTickBits; }
inline Time cycles(Ticks t) { return (t + kTick - 1) >> kTickBits; }  // rounded up
inline Ticks ticks_for(double amount, double per_cycle) {
  return static_cast<Ticks>(std::llround(amount * static_cast<double>(kTick) / per_cycle));
}

class Pipe {
 public:
  // Takes `length` of the pipe's time, not before `from`; gives when that is over.
  Ticks reserve(Ticks from, Ticks length) {
    free_ = std::max(free_, from) + length;
    busy_ += length;
    return free_;
  }
  Ticks free() const { return free_; }
  Ticks busy() const { return busy_; }

 private:
  Ticks free_ = 0;
  Ticks busy_ = 0;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_PIPE_H_
