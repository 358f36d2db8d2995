// map_id: Find each id among the sorted keys: its place counted from 1, or 0 where it is missing.
// Generated from spec 2a0b685e5976ff86 and schedule 739e47410b5e392c.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 50000, U = 10000.
#ifndef EVEN_B
#define EVEN_B 1
#endif
#ifndef STEPS_KEYS
#define STEPS_KEYS 14
#endif

// y[b] = where(hit[b] == ids[b], pos[b] + 1, 0)
extern "C" __global__ void __launch_bounds__(64, 1) map_id_0(
    const int* __restrict__ keys_ptr,
    const int* __restrict__ ids_ptr,
    int* __restrict__ y_ptr,
    int B,
    int U) {
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int b_at = tile * 16;
  const int offs_b = b_at + thread % 16;
  const bool mask_b = (offs_b < B) | EVEN_B;
  int ids;
  load<1, EvictFirst>(&ids, ids_ptr + offs_b, mask_b, 0);
  const int keys_rank = rank<STEPS_KEYS>(keys_ptr, U, ids);
  const int keys_rows = fn::minimum(keys_rank, U - 1);
  const int x_keys_at_2 = (read(keys_ptr, keys_rows, mask_b));
  const int y = ((x_keys_at_2 == ids) ? keys_rank + 1 : 0);
  if ((thread & 48) == 0)
    write(y_ptr, offs_b, mask_b, y);
}
