#include "backends/sim/native/events.h"

#include <bit>

#include "backends/sim/native/error.h"

namespace sim {

void Events::run(Time max_time, std::int64_t max_count) {
  while (pending_ > 0) {
    const auto bucket = static_cast<std::size_t>(now_ & (kWheel - 1));
    if (!wheel_[bucket].empty()) {
      drain(wheel_[bucket]);
      used_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
    }
    if (pending_ == 0) return;
    if (max_count > 0 && count_ > max_count)
      fail("stopped after ", count_, " events at cycle ", now_, ": the limit is ", max_count,
           " events; the program may not end, or needs a higher limit");
    const Time near = next_near();
    const Time to = far_.empty() || near < far_.top().when ? near : far_.top().when;
    if (max_time > 0 && to > max_time)
      fail("stopped at cycle ", now_, ": the limit is ", max_time,
           " cycles; the program may not end, or needs a higher limit");
    advance(to);
  }
}

void Events::drain(std::vector<Event>& bucket) {
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const Event event = bucket[i];
    --pending_;
    ++count_;
    event.act(event.what);
  }
  bucket.clear();
}

Time Events::next_near() const {
  const auto first = static_cast<std::size_t>((now_ + 1) & (kWheel - 1));
  for (int i = 0; i <= kWords; ++i) {
    const std::size_t word = (first / 64 + static_cast<std::size_t>(i)) % kWords;
    std::uint64_t bits = used_[word];
    if (i == 0) bits &= ~std::uint64_t{0} << (first % 64);
    if (i == kWords) bits &= ~(~std::uint64_t{0} << (first % 64));
    if (bits == 0) continue;
    const Time bucket = static_cast<Time>(word * 64) + std::countr_zero(bits);
    return now_ + 1 + ((bucket - static_cast<Time>(first)) & (kWheel - 1));
  }
  return INT64_MAX;
}

void Events::advance(Time to) {
  now_ = to;
  // Before anything runs at the new time, so that what was put in first also happens first.
  while (!far_.empty() && far_.top().when - now_ < kWheel) {
    put(far_.top().when, far_.top().event);
    far_.pop();
  }
}

void Events::reset(Time now) {
  for (auto& bucket : wheel_) bucket.clear();
  used_.fill(0);
  while (!far_.empty()) far_.pop();
  pending_ = 0;
  now_ = now;
}

}  // namespace sim
