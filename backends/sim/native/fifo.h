// A bounded first-in first-out queue between one producer and one consumer.
#ifndef BACKENDS_SIM_NATIVE_FIFO_H_
#define BACKENDS_SIM_NATIVE_FIFO_H_

#include <coroutine>
#include <cstddef>
#include <utility>
#include <vector>

#include "backends/sim/native/events.h"

namespace sim {

// Plain calls never wait; `pop` and `push` of the same names with co_await do.
template <class T>
class Fifo {
 public:
  explicit Fifo(std::size_t capacity) : ring_(capacity) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == ring_.size(); }
  std::size_t size() const { return size_; }
  const T& front() const { return ring_[first_]; }
  const T& operator[](std::size_t i) const { return ring_[wrap(first_ + i)]; }

  void put(T item) {
    ring_[wrap(first_ + size_)] = std::move(item);
    ++size_;
  }
  T take() {
    T item = std::move(ring_[first_]);
    first_ = wrap(first_ + 1);
    --size_;
    return item;
  }

  struct Push {
    Fifo& fifo;
    Events& events;
    T item;
    bool await_ready() const { return !fifo.full(); }
    void await_suspend(std::coroutine_handle<> handle) const { fifo.producer_ = handle; }
    void await_resume() {
      fifo.put(std::move(item));
      if (fifo.consumer_) events.at(events.now(), std::exchange(fifo.consumer_, {}));
    }
  };
  struct Pop {
    Fifo& fifo;
    Events& events;
    bool await_ready() const { return !fifo.empty(); }
    void await_suspend(std::coroutine_handle<> handle) const { fifo.consumer_ = handle; }
    T await_resume() {
      if (fifo.producer_) events.at(events.now(), std::exchange(fifo.producer_, {}));
      return fifo.take();
    }
  };
  Push push(Events& events, T item) { return {*this, events, std::move(item)}; }
  Pop pop(Events& events) { return {*this, events}; }

 private:
  std::size_t wrap(std::size_t i) const { return i >= ring_.size() ? i - ring_.size() : i; }

  std::vector<T> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::coroutine_handle<> producer_;
  std::coroutine_handle<> consumer_;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_FIFO_H_
