// The barrier of a launch: nobody goes on before everybody has come.
#ifndef BACKENDS_SIM_NATIVE_BARRIER_H_
#define BACKENDS_SIM_NATIVE_BARRIER_H_

#include <utility>
#include <vector>

#include "backends/sim/native/events.h"

namespace sim {

class Barrier {
 public:
  void expect(std::size_t count) {
    count_ = count;
    waiting_.clear();
  }
  // One more has come; when it is the last, all are let go in cycle `go`, and it is true.
  bool arrive(Events& events, Event resume, Time go) {
    waiting_.push_back(resume);
    if (waiting_.size() < count_) return false;
    for (const Event& event : std::exchange(waiting_, {})) events.at(go, event);
    return true;
  }
  std::size_t arrived() const { return waiting_.size(); }
  std::size_t expected() const { return count_; }

 private:
  std::size_t count_ = 0;
  std::vector<Event> waiting_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_BARRIER_H_
