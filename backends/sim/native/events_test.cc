#include "backends/sim/native/events.h"

#include <vector>

#include "backends/sim/native/error.h"
#include "backends/sim/native/event_rate.h"
#include "backends/sim/native/expect.h"
#include "backends/sim/native/fifo.h"
#include "backends/sim/native/process.h"

namespace sim {
namespace {

struct Note {
  Events& events;
  std::vector<std::pair<Time, int>>& log;
  int number;
};

Event write(Note& note) {
  return {[](void* what) {
            auto& n = *static_cast<Note*>(what);
            n.log.emplace_back(n.events.now(), n.number);
          },
          &note};
}

void events_come_in_order_of_time_then_of_entry() {
  Events events;
  std::vector<std::pair<Time, int>> log;
  std::vector<Note> notes;
  for (int i = 0; i < 7; ++i) notes.push_back({events, log, i});
  events.at(9000, write(notes[0]));  // beyond the wheel
  events.at(5, write(notes[1]));
  events.at(0, write(notes[2]));
  events.at(5, write(notes[3]));
  events.at(4096, write(notes[4]));
  events.at(4095, write(notes[5]));
  events.at(1'000'000'007, write(notes[6]));
  events.run(0, 0);
  const std::vector<std::pair<Time, int>> want = {{0, 2},    {5, 1},    {5, 3},         {4095, 5},
                                                  {4096, 4}, {9000, 0}, {1'000'000'007, 6}};
  EXPECT(log == want);
  EXPECT(events.count() == 7);
}

Process tick(Events& events, Time period, int times, std::vector<std::pair<Time, int>>& log) {
  for (int i = 0; i < times; ++i) {
    co_await Until{events, events.now() + period};
    log.emplace_back(events.now(), i);
  }
}

void what_was_far_goes_before_what_is_entered_later() {
  Events events;
  std::vector<std::pair<Time, int>> log;
  Note far{events, log, -1};
  events.at(5000, write(far));
  const Process process = tick(events, 1000, 5, log);
  events.at(0, process.handle());
  events.run(0, 0);
  EXPECT(log.size() == 6);
  EXPECT((log[4] == std::pair<Time, int>{5000, -1}));
  EXPECT((log[5] == std::pair<Time, int>{5000, 4}));
}

void limits_stop_a_run() {
  Events events;
  std::vector<std::pair<Time, int>> log;
  const Process process = tick(events, 10, 1000, log);
  events.at(0, process.handle());
  const auto run = [&] { events.run(95, 0); };
  EXPECT(message_of<SimulationError>(run).starts_with("stopped at cycle 90: the limit is 95"));
  EXPECT(events.now() == 90);
  const auto more = [&] { events.run(0, 20); };
  EXPECT(message_of<SimulationError>(more).starts_with("stopped after 21 events"));
}

Process produce(Events& events, Fifo<int>& fifo) {
  for (int i = 0; i < 5; ++i) co_await fifo.push(events, i);
}

Process consume(Events& events, Fifo<int>& fifo, std::vector<std::pair<Time, int>>& log) {
  for (int i = 0; i < 5; ++i) {
    const int item = co_await fifo.pop(events);
    log.emplace_back(events.now(), item);
    co_await Until{events, events.now() + 10};
  }
}

void a_fifo_keeps_order_and_holds_its_producer() {
  Events events;
  Fifo<int> fifo(2);
  std::vector<std::pair<Time, int>> log;
  const Process first = consume(events, fifo, log);
  const Process second = produce(events, fifo);
  events.at(0, first.handle());
  events.at(0, second.handle());
  events.run(0, 0);
  const std::vector<std::pair<Time, int>> want = {{0, 0}, {10, 1}, {20, 2}, {30, 3}, {40, 4}};
  EXPECT(log == want);
  EXPECT(fifo.empty());
}

}  // namespace
}  // namespace sim

int main() {
  sim::events_come_in_order_of_time_then_of_entry();
  sim::what_was_far_goes_before_what_is_entered_later();
  sim::limits_stop_a_run();
  sim::a_fifo_keeps_order_and_holds_its_producer();
  EXPECT(sim::event_rate(1000) > 0);
  return sim::failures != 0;
}
