// Memory for the tiles of a kernel on a processor with caches.
#ifndef BACKENDS_SHARED_PRELUDE_ARENA_H_
#define BACKENDS_SHARED_PRELUDE_ARENA_H_

#include <stdlib.h>

#include "launch.h"

namespace {

// Memory of one thread, kept for the next launch.
struct Block {
  void* data = nullptr;
  Index bytes = 0;
  ~Block() { free(data); }
  void* reserve(Index wanted) {
    if (wanted > bytes) {
      free(data);
      bytes = tiles(wanted, 4096) * 4096;
      data = aligned_alloc(4096, bytes);
      if (data == nullptr) abort();
    }
    return data;
  }
};
constexpr int kMostTiles = 512;
thread_local Block blocks[kMostTiles];

// The n-th tile that a kernel takes lies where the last n-th one did. It begins some cache lines
// into a page, others for each tile: loads and stores whose addresses end alike wait for each other.
struct Arena {
  int taken = 0;
  template <class T>
  Array<T> take(Index count) {
    if (taken == kMostTiles) abort();
    const Index bytes = (count < 1 ? 1 : count) * Index(sizeof(T)), offset = taken * 320 % 4096;
    char* page = static_cast<char*>(blocks[taken++].reserve(bytes + offset));
    return {reinterpret_cast<T*>(page + offset)};
  }
};

}  // namespace

#endif  // BACKENDS_SHARED_PRELUDE_ARENA_H_
