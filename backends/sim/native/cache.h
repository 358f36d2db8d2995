// Which blocks of global memory the shared memory holds: least recently used goes first.
#ifndef BACKENDS_SIM_NATIVE_CACHE_H_
#define BACKENDS_SIM_NATIVE_CACHE_H_

#include <cstdint>
#include <vector>

#include "backends/sim/native/spec.h"

namespace sim {

// A block may be held in part: `sectors` says which of its 64 parts are valid.
class Cache {
 public:
  // Holds `capacity` of `blocks` blocks.
  Cache(Index capacity, Index blocks);

  // When the sectors of a block can be read: a cycle, or -1 if not all are held. A block that is
  // held becomes the last used.
  Time find(Index block, std::uint64_t sectors);
  // The sectors are held now, readable from `ready` on; may push another block out.
  void put(Index block, std::uint64_t sectors, Time ready);

  Index held() const { return held_; }

 private:
  static constexpr std::int32_t kNone = -1;
  struct Entry {
    std::uint64_t sectors = 0;
    Time ready = 0;
    std::int32_t older = kNone;
    std::int32_t newer = kNone;
  };
  void unlink(std::int32_t block);
  void link_newest(std::int32_t block);

  Index capacity_;
  Index held_ = 0;
  std::vector<Entry> entries_;
  std::int32_t oldest_ = kNone;
  std::int32_t newest_ = kNone;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_CACHE_H_
