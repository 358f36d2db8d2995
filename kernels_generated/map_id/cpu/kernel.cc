// map_id: Find each id among the sorted keys: its place counted from 1, or 0 where it is missing.
// Generated from spec 2a0b685e5976ff86 and schedule a315fcf182334567.
#include "kernel.h"

// y[b] = where(hit[b] == ids[b], pos[b] + 1, 0)
KERNEL(map_id_0_launch) {
  const Index B = args.size(0);
  const Index U = args.size(1);
  const Index b_tiles = tiles(B, 256);
  const Index count = b_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<i32> keys_g = args.array<i32>(0);
    const Array<i32> ids_g = args.array<i32>(1);
    const Array<i32> y_g = args.array<i32>(2);
    const Array<i32> keys_t = arena.take<i32>((U));
    const Array<i32> ids_t = arena.take<i32>((256));
    const Array<i32> keys_rank_t = arena.take<i32>((256));
    const Array<i32> keys_rows_t = arena.take<i32>((256));
    const Array<i32> keys_at_t = arena.take<i32>((256));
    const Array<i32> y_t = arena.take<i32>((256));
    const bool first = first_thread();
#pragma omp simd
    for (Index keys_0_i = 0; keys_0_i < U; ++keys_0_i) {
      keys_t(keys_0_i) = keys_g(keys_0_i);
    }
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index b_at = rest % b_tiles * 256;
      const Index b_n = least(256, B - b_at);
#pragma omp simd
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        ids_t(b_i) = ids_g(b_at + b_i);
      }
#pragma omp simd
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        keys_rank_t(b_i) = rank(keys_t, U, ids_t(b_i));
      }
#pragma omp simd
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        keys_rows_t(b_i) = fn::minimum(keys_rank_t(b_i), i32(U - (1)));
      }
#pragma omp simd
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        keys_at_t(b_i) = keys_t(keys_rows_t(b_i));
      }
#pragma omp simd
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        y_t(b_i) = ((keys_at_t(b_i) == ids_t(b_i)) ? (keys_rank_t(b_i) + 1) : 0);
      }
#pragma omp simd
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        y_g(b_at + b_i) = y_t(b_i);
      }
    }
  }
}
