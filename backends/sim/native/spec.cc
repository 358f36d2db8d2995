#include "backends/sim/native/spec.h"

#include "backends/sim/native/error.h"

namespace sim {

void check(const Spec& spec) {
  if (spec.dram.interleave_bytes % spec.shared.block_bytes != 0)
    throw SpecError(text("dram.interleave_bytes = ", spec.dram.interleave_bytes,
                         ": must be a multiple of shared.block_bytes = ",
                         spec.shared.block_bytes));
  if (spec.shared.bytes < spec.shared.block_bytes)
    throw SpecError(text("shared.bytes = ", spec.shared.bytes,
                         ": must hold at least one block of shared.block_bytes = ",
                         spec.shared.block_bytes));
  const Index chunk = spec.dma.chunk_bytes;
  const Index block = spec.shared.block_bytes;
  if (chunk % block != 0 && block % chunk != 0)
    throw SpecError(text("dma.chunk_bytes = ", chunk,
                         ": must divide shared.block_bytes or be a multiple of it (", block, ")"));
  if (spec.table_bits < 5 || spec.table_bits > 16)
    throw SpecError(text("special.table_bits = ", spec.table_bits, ": must be 5 .. 16"));
}

}  // namespace sim
