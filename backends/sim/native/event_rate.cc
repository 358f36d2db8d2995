#include "backends/sim/native/event_rate.h"

#include <chrono>
#include <memory>
#include <vector>

#include "backends/sim/native/fifo.h"
#include "backends/sim/native/process.h"

namespace sim {
namespace {

constexpr int kPairs = 64;
constexpr std::size_t kDepth = 4;

Process produce(Events& events, Fifo<std::int64_t>& fifo, Time period, std::int64_t items) {
  for (std::int64_t i = 0; i < items; ++i) {
    co_await Until{events, events.now() + period};
    co_await fifo.push(events, i);
  }
}

Process consume(Events& events, Fifo<std::int64_t>& fifo, Time period, std::int64_t items) {
  for (std::int64_t i = 0; i < items; ++i) {
    co_await fifo.pop(events);
    co_await Until{events, events.now() + period};
  }
}

}  // namespace

double event_rate(std::int64_t count) {
  Events events;
  std::vector<std::unique_ptr<Fifo<std::int64_t>>> fifos;
  std::vector<Process> processes;
  const std::int64_t items = count / (2 * kPairs) + 1;
  for (int i = 0; i < kPairs; ++i) {
    fifos.push_back(std::make_unique<Fifo<std::int64_t>>(kDepth));
    processes.push_back(produce(events, *fifos.back(), 1 + i % 3, items));
    processes.push_back(consume(events, *fifos.back(), 1 + i % 2, items));
  }
  for (const Process& process : processes) events.at(0, process.handle());
  const auto start = std::chrono::steady_clock::now();
  events.run(0, 0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(events.count()) / seconds.count();
}

}  // namespace sim
