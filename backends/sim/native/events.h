// The event queue: what happens when. Events of one cycle happen in the order they were put in.
#ifndef BACKENDS_SIM_NATIVE_EVENTS_H_
#define BACKENDS_SIM_NATIVE_EVENTS_H_

#include <array>
#include <coroutine>
#include <cstdint>
#include <queue>
#include <vector>

#include "backends/sim/native/spec.h"

namespace sim {

// A call to make at some cycle: of a function, or to resume a coroutine.
struct Event {
  void (*act)(void*);
  void* what;
};

inline Event resume(std::coroutine_handle<> handle) {
  return {[](void* address) { std::coroutine_handle<>::from_address(address).resume(); },
          handle.address()};
}

// A wheel of one bucket a cycle for the near future, and a heap for what lies beyond it.
class Events {
 public:
  Events() : wheel_(kWheel) {}

  Time now() const { return now_; }
  std::int64_t count() const { return count_; }

  // `when` must not lie in the past.
  void at(Time when, Event event) {
    ++pending_;
    if (when - now_ < kWheel) {
      put(when, event);
    } else {
      far_.push({when, sequence_++, event});
    }
  }
  void at(Time when, std::coroutine_handle<> handle) { at(when, resume(handle)); }

  // Runs until nothing is left. Throws SimulationError past a limit (0: none).
  void run(Time max_time, std::int64_t max_count);

  // Forgets everything that is still to come and sets the clock.
  void reset(Time now);

 private:
  static constexpr Time kWheel = 4096;
  static constexpr int kWords = kWheel / 64;

  struct Far {
    Time when;
    std::uint64_t sequence;
    Event event;
    bool operator>(const Far& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  void put(Time when, Event event) {
    const auto bucket = static_cast<std::size_t>(when & (kWheel - 1));
    wheel_[bucket].push_back(event);
    used_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
  }
  void drain(std::vector<Event>& bucket);
  Time next_near() const;
  void advance(Time to);

  Time now_ = 0;
  std::int64_t pending_ = 0;
  std::int64_t count_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::vector<Event>> wheel_;
  std::array<std::uint64_t, kWords> used_{};
  std::priority_queue<Far, std::vector<Far>, std::greater<Far>> far_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_EVENTS_H_
