#include "backends/sim/native/mesh.h"

#include <algorithm>
#include <cstdlib>

namespace sim {

Mesh::Mesh(const MeshSpec& spec, Index rows, Index columns)
    : spec_(spec), rows_(static_cast<int>(rows)), columns_(static_cast<int>(columns)),
      links_(static_cast<std::size_t>(rows * columns * kDirections)),
      taken_(links_.size(), 0), head_(links_.size(), 0) {}

Index Mesh::hops(int from, int to) const {
  return std::abs(from % columns_ - to % columns_) + std::abs(from / columns_ - to / columns_) + 1;
}

Time Mesh::send(Time at, int from, int to, Index bytes, End end) {
  start_broadcast(at, from, bytes);
  return branch(to, end);
}

void Mesh::start_broadcast(Time at, int from, Index bytes) {
  ++turn_;
  from_ = from;
  length_bytes_ = bytes;
  length_ = ticks_for(static_cast<double>(bytes), spec_.bytes_per_cycle);
  left_ = ticks(at);
}

void Mesh::step(int node, Direction d, Ticks& head) {
  const auto i = static_cast<std::size_t>(node * kDirections + d);
  if (taken_[i] != turn_) {
    taken_[i] = turn_;
    const Ticks end = links_[i].reserve(head, length_);
    head_[i] = end - length_ + ticks(spec_.hop_cycles);
    bytes_ += length_bytes_;
  }
  head = head_[i];
}

Time Mesh::branch(int to, End end) {
  Ticks head = left_;
  int node = from_;
  for (const int column = to % columns_; node % columns_ != column;) {
    const bool east = node % columns_ < column;
    step(node, east ? kEast : kWest, head);
    node += east ? 1 : -1;
  }
  for (const int row = to / columns_; node / columns_ != row;) {
    const bool south = node / columns_ < row;
    step(node, south ? kSouth : kNorth, head);
    node += south ? columns_ : -columns_;
  }
  step(node, end == End::bank ? kBank : kElement, head);
  return cycles(head + length_);
}

int Mesh::bank_node(Index bank, Index banks) const {
  const Index side = bank % 2;
  const Index row = bank / 2 * rows_ / std::max<Index>((banks + 1) / 2, 1);
  return static_cast<int>(row * columns_ + (side == 0 ? 0 : columns_ - 1));
}

Ticks Mesh::busiest() const {
  Ticks most = 0;
  for (const Pipe& link : links_) most = std::max(most, link.busy());
  return most;
}

}  // namespace sim
