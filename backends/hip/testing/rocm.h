// HIP of ROCm as its run-time compiler has it: the headers of Triton's package, in their order, and the
// functions of floats that clang itself brings.
typedef __SIZE_TYPE__ size_t;
typedef unsigned uint;
typedef unsigned long ulong;
typedef unsigned short ushort;
typedef unsigned char uchar;
#include "clang_hip_math.h"
#include <hip/hip_runtime.h>
#include <hip/amd_detail/device_library_decls.h>
#include <hip/amd_detail/amd_hip_unsafe_atomics.h>
#include <hip/amd_detail/amd_hip_atomic.h>
#include <hip/amd_detail/amd_warp_functions.h>
#include <hip/amd_detail/amd_device_functions.h>
