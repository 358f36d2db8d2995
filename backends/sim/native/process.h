// A part of the machine that acts by itself: a coroutine that runs until it is destroyed.
#ifndef BACKENDS_SIM_NATIVE_PROCESS_H_
#define BACKENDS_SIM_NATIVE_PROCESS_H_

#include <coroutine>
#include <utility>

#include "backends/sim/native/events.h"

namespace sim {

class Process {
 public:
  struct promise_type {
    Process get_return_object() {
      return Process(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };

  Process() = default;
  explicit Process(std::coroutine_handle<> handle) : handle_(handle) {}
  Process(Process&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Process() {
    if (handle_) handle_.destroy();
  }

  std::coroutine_handle<> handle() const { return handle_; }

 private:
  std::coroutine_handle<> handle_;
};

// co_await Until{events, when}: goes on at that cycle (at once, if it has come).
struct Until {
  Events& events;
  Time when;
  bool await_ready() const { return when <= events.now(); }
  void await_suspend(std::coroutine_handle<> handle) const { events.at(when, handle); }
  void await_resume() const {}
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_PROCESS_H_
