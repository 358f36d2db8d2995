// How fast the event core is on this machine.
#ifndef BACKENDS_SIM_NATIVE_EVENT_RATE_H_
#define BACKENDS_SIM_NATIVE_EVENT_RATE_H_

#include <cstdint>

namespace sim {

// Events a second, over at least `events` events of coroutine pairs that hand items to each
// other through bounded queues.
double event_rate(std::int64_t events);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_EVENT_RATE_H_
