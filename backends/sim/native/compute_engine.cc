// The process of the matrix, vector, special-function and reduction engines.
#include "backends/sim/native/chip.h"
#include "backends/sim/native/cost.h"
#include "backends/sim/native/element.h"
#include "backends/sim/native/engine.h"
#include "backends/sim/native/execute.h"

namespace sim {

// A command holds the engine while its elements enter the pipeline; its result is there when the
// last has left it, `startup` cycles later. The next may enter meanwhile.
Process compute(Engine& engine) {
  Chip& chip = engine.chip();
  Element& element = engine.element();
  while (true) {
    Command& command = co_await engine.ready();
    engine.begin(command);
    if (chip.options.functional)
      element.at_command(command, [&] { execute(command, element.memory(), chip.tables); });
    const Time end = command.started + command.occupied;
    const Time busy = command.occupied;
    chip.events.at(end + startup(command, chip.spec), Element::completion(command));
    co_await Until{chip.events, end};
    engine.retire(busy);
  }
}

}  // namespace sim
