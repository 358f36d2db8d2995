// The mesh between processing elements and memory banks: links along rows, then columns.
#ifndef BACKENDS_SIM_NATIVE_MESH_H_
#define BACKENDS_SIM_NATIVE_MESH_H_

#include <cstdint>
#include <vector>

#include "backends/sim/native/pipe.h"
#include "backends/sim/native/spec.h"

namespace sim {

// Nodes are numbered row by row. A message goes along its row, then along the column, and holds
// each link for its length; its head takes hop_cycles a link. The path is reserved when the
// message leaves, so what leaves first goes first on every link.
class Mesh {
 public:
  Mesh(const MeshSpec& spec, Index rows, Index columns);

  // How many links lie between two nodes, with the one out of the last node.
  Index hops(int from, int to) const;
  Time delay(int from, int to) const { return hops(from, to) * spec_.hop_cycles; }

  // Where a message ends: at the processing element of the node, or at the bank beside it.
  enum class End { element, bank };
  // Gives the cycle in which the last byte arrives.
  Time send(Time at, int from, int to, Index bytes, End end);

  // The same bytes to several nodes: each link of the paths is taken once. Between
  // start_broadcast and the next one, branch gives the arrival at one more node.
  void start_broadcast(Time at, int from, Index bytes);
  Time branch(int to, End end = End::element);

  // Where bank number `bank` of `banks` sits: at the two outer columns, spread over the rows.
  int bank_node(Index bank, Index banks) const;

  Index bytes() const { return bytes_; }  // summed over links
  Ticks busiest() const;

 private:
  enum Direction { kEast, kWest, kSouth, kNorth, kElement, kBank, kDirections };
  // Takes one link of the broadcast in flight, or finds that it was taken.
  void step(int node, Direction d, Ticks& head);

  MeshSpec spec_;
  int rows_;
  int columns_;
  std::vector<Pipe> links_;
  Index bytes_ = 0;

  // The broadcast in flight.
  int from_ = 0;
  Index length_bytes_ = 0;
  Ticks length_ = 0;
  Ticks left_ = 0;
  std::uint64_t turn_ = 0;
  std::vector<std::uint64_t> taken_;  // by which broadcast, per link
  std::vector<Ticks> head_;           // when its head was over the link
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_MESH_H_
