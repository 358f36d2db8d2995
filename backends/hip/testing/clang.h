// What clang includes before a HIP source, in headers that ziglang does not bring: attributes, and
// functions of floats that the device has.
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __CLANG_HIP_RUNTIME_WRAPPER_INCLUDED__ 1
#include <cmath>
#include <cstdlib>
#include "../device/clang_hip_math.h"
