// What a DMA command moves: a region of a tensor, and the tile on the other side.
#ifndef BACKENDS_SIM_NATIVE_TRANSFER_H_
#define BACKENDS_SIM_NATIVE_TRANSFER_H_

#include <cstdint>
#include <vector>

#include "backends/sim/native/races.h"
#include "backends/sim/native/spec.h"
#include "backends/sim/native/tensor.h"
#include "backends/sim/native/walk.h"

namespace sim {

// One dimension of the tensor.
struct Dimension {
  Index start = 0;
  Index step = 1;
  Index extent = 1;
  Index tile_stride = 0;
  bool indirect = false;
  Walk rows;  // the tile that holds the positions, its only operand
};

// scattered: dimensions may go together, so positions are those of single elements, in the order
// of the loops of `box`, whose only operand is the tile.
struct Transfer {
  const TensorInfo* tensor = nullptr;
  bool padded = false;
  double pad = 0;
  bool scattered = false;
  Walk box;
  Axis axis[device::kMaxRank];            // that each plain dimension runs along
  Dimension dimension[device::kMaxRank];  // tensor->rank of them
};

// Resolves a region. The walk gets the tile as its only operand. Throws SimulationError if the
// region does not fit the tensor, or the tile does not fit the region.
void resolve(Transfer& transfer, const TensorInfo& tensor, const device::Region& region,
             const Tile& tile, device::Outside outside, LocalMemory& memory, Walk& walk);

// The positions of a transfer along each dimension, of a scattered one those of its elements in
// `at[0]`, counted from the tensor's first; -1 is outside the tensor. For dimensions
// that another tile gives they are read from it; `memory` is null when only time is simulated,
// and such positions are then spread over the dimension. Throws SimulationError for a position
// outside the tensor unless the transfer is padded.
struct Positions {
  std::vector<Index> at[device::kMaxRank];
};
void find_positions(const Transfer& transfer, LocalMemory* memory, Positions& out);

// Moves the values. `tile` is the tile's first element; `pe` has it.
void move(const Transfer& transfer, const Positions& positions, Move how, std::byte* tile,
          Races& races, Index pe);

// One request to memory: bytes of one block.
struct Chunk {
  Index address = 0;  // of its first byte
  Index bytes = 0;
  Index runs = 0;             // contiguous pieces
  std::uint64_t sectors = 0;  // which 64ths of the block it touches
};
void find_chunks(const Transfer& transfer, const Positions& positions, const Spec& spec,
                 std::vector<Chunk>& out);

// The sectors of a block that `bytes` bytes from `address` touch.
std::uint64_t sectors_of(Index address, Index bytes, Index block_bytes);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_TRANSFER_H_
