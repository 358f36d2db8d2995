#include "backends/sim/native/cache.h"

#include <algorithm>

namespace sim {

Cache::Cache(Index capacity, Index blocks)
    : capacity_(capacity), entries_(static_cast<std::size_t>(blocks)) {}

Time Cache::find(Index block, std::uint64_t sectors) {
  const auto i = static_cast<std::int32_t>(block);
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  if (entry.sectors == 0) return -1;
  unlink(i);
  link_newest(i);
  return (sectors & ~entry.sectors) == 0 ? entry.ready : -1;
}

void Cache::put(Index block, std::uint64_t sectors, Time ready) {
  const auto i = static_cast<std::int32_t>(block);
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  if (entry.sectors != 0) {
    unlink(i);
  } else if (held_ == capacity_) {
    const std::int32_t victim = oldest_;
    unlink(victim);
    entries_[static_cast<std::size_t>(victim)] = Entry{};
  } else {
    ++held_;
  }
  entry.sectors |= sectors;
  entry.ready = std::max(entry.ready, ready);
  link_newest(i);
}

void Cache::unlink(std::int32_t block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  (entry.older == kNone ? oldest_ : entries_[static_cast<std::size_t>(entry.older)].newer) =
      entry.newer;
  (entry.newer == kNone ? newest_ : entries_[static_cast<std::size_t>(entry.newer)].older) =
      entry.older;
  entry.older = entry.newer = kNone;
}

void Cache::link_newest(std::int32_t block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  entry.older = newest_;
  (newest_ == kNone ? oldest_ : entries_[static_cast<std::size_t>(newest_)].newer) = block;
  newest_ = block;
}

}  // namespace sim
