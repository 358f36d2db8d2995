#include "backends/sim/native/execute.h"

#include <cstring>

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {

std::byte* data_of(const Walk& walk, int operand, LocalMemory& memory) {
  const View& view = walk.view[operand];
  if (view.constant) return nullptr;
  return memory.slot(view.slot).data + view.offset * size_of(view.dtype);
}

void check_written(const Walk& walk, int operand, LocalMemory& memory) {
  if (walk.view[operand].constant) return;
  const SlotState& slot = memory.slot(walk.view[operand].slot);
  if (slot.written == nullptr || slot.unwritten == 0) return;
  const auto refuse = [&](Index element) {
    fail("reads element ", element, " of buffer '",
         memory.buffer_of(walk.view[operand].slot).name, "' (slot ",
         walk.view[operand].slot - memory.buffer_of(walk.view[operand].slot).first_slot,
         "), which was never written");
  };
  for_runs(walk, operand, [&](Index offset, Index stride, Index n) {
    if (stride == 1) {
      const void* hole = std::memchr(slot.written + offset, 0, static_cast<std::size_t>(n));
      if (hole != nullptr) refuse(static_cast<const std::uint8_t*>(hole) - slot.written);
      return;
    }
    for (Index i = 0; i < n; ++i)
      if (slot.written[offset + i * stride] == 0) refuse(offset + i * stride);
  });
}

void mark_written(const Walk& walk, int operand, LocalMemory& memory) {
  SlotState& slot = memory.slot(walk.view[operand].slot);
  if (slot.written == nullptr || slot.unwritten == 0) return;
  for_runs(walk, operand, [&](Index offset, Index stride, Index n) {
    for (Index i = 0; i < n; ++i) {
      std::uint8_t& flag = slot.written[offset + i * stride];
      slot.unwritten -= flag == 0;
      flag = 1;
    }
  });
}

void execute(const Command& command, LocalMemory& memory, const Tables& tables) {
  switch (command.kind) {
    case Kind::map: return execute_map(command, memory, tables);
    case Kind::fill: return execute_fill(command, memory);
    case Kind::iota: return execute_iota(command, memory);
    case Kind::bucketize: return execute_bucketize(command, memory);
    case Kind::take: return execute_take(command, memory);
    case Kind::reduce: return execute_reduce(command, memory);
    case Kind::scan: return execute_scan(command, memory);
    case Kind::matmul: return execute_matmul(command, memory);
    default: fail("is no command of a compute engine");
  }
}

}  // namespace sim
