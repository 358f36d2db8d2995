// What the commands of the compute engines do to local memory.
#ifndef BACKENDS_SIM_NATIVE_EXECUTE_H_
#define BACKENDS_SIM_NATIVE_EXECUTE_H_

#include "backends/sim/native/command.h"
#include "backends/sim/native/local_memory.h"
#include "backends/sim/native/tables.h"

namespace sim {

// Computes a command of the matrix, vector, special-function or reduction engine. Throws
// SimulationError for what can only be seen now: unwritten operands, positions out of range.
void execute(const Command& command, LocalMemory& memory, const Tables& tables);

// Throws SimulationError if the walk reads an element of the operand that was never written.
void check_written(const Walk& walk, int operand, LocalMemory& memory);
// The walk writes the operand.
void mark_written(const Walk& walk, int operand, LocalMemory& memory);

// The operand's first element.
std::byte* data_of(const Walk& walk, int operand, LocalMemory& memory);

// One family of commands a file.
void execute_map(const Command& command, LocalMemory& memory, const Tables& tables);
void execute_fill(const Command& command, LocalMemory& memory);
void execute_iota(const Command& command, LocalMemory& memory);
void execute_bucketize(const Command& command, LocalMemory& memory);
void execute_take(const Command& command, LocalMemory& memory);
void execute_reduce(const Command& command, LocalMemory& memory);
void execute_scan(const Command& command, LocalMemory& memory);
void execute_matmul(const Command& command, LocalMemory& memory);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_EXECUTE_H_
