// One command of a program, from its issue to its completion.
#ifndef BACKENDS_SIM_NATIVE_COMMAND_H_
#define BACKENDS_SIM_NATIVE_COMMAND_H_

#include <cstdint>

#include "backends/sim/native/device/device.h"
#include "backends/sim/native/scoreboard.h"
#include "backends/sim/native/transfer.h"
#include "backends/sim/native/walk.h"

namespace sim {

using device::Reduction;
using device::Op;

// The engines of a processing element, each with a queue of its own.
enum class Unit : std::uint8_t {
  dma_in, dma_out, matrix, vector, special, reduction, mesh_out, mesh_in,
};
inline constexpr int kUnits = 8;
const char* name_of(Unit unit);

enum class Kind : std::uint8_t {
  load, load_shared, store, add, send, receive,
  map, fill, iota, bucketize, take, reduce, scan, matmul,
};
const char* name_of(Kind kind);
const char* name_of(Op op);

class Element;

// The small parts of a command.
struct CommandFields {
  Kind kind = Kind::load;
  Unit unit = Unit::dma_in;
  Op op = Op::copy;
  Reduction reduction = Reduction::sum;
  bool reductions = false;       // receive: combine with what is there
  bool accumulate = false;  // reduce, matmul
  Element* element = nullptr;
  Time issued = 0;
  Time started = 0;
  Time occupied = 0;  // how long it holds its engine
  device::Group group{};
  Index peer = 0;         // send, receive: the other processing element
  Index start = 0;        // iota
  Index count = 0;        // bucketize, take: valid positions
  Index axis_stride = 0;  // bucketize, take: of the table along its own axis
  int axis_loop = 0;      // iota, scan: the loop that moves along the axis
  double value = 0;       // fill
};

struct Command : CommandFields {
  Hazards hazards;
  Walk walk;
  Transfer transfer;

  // Makes it as new. The large parts know how much of them counts.
  void reset() {
    static_cast<CommandFields&>(*this) = CommandFields{};
    hazards.size = 0;
    walk.operands = 0;
    walk.loops = 0;
    transfer.tensor = nullptr;
  }
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_COMMAND_H_
