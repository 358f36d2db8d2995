"""Generates C that launches a cubin through NVIDIA's driver, for programs without Python.

The calls of a kernel at given sizes are tables; the code that walks through them is the same for
all kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backends.gpu.cubins.driver import encoding
from backends.gpu.source.launches import Call, Map
from backends.parameters import Parameter

DIMS = 5  # most dimensions of a tensor map
_BYTES = 16  # of a line of the image
_HEADER = """\
/* {what}
   All functions work in the current context. */
#ifndef {guard}
#define {guard}
#include <cuda.h>

typedef struct {{
  CUmodule module;
  CUfunction functions[{functions}];
}} {name}_kernel;

CUresult {name}_load(struct_ *kernel);
/* Enqueues the kernel on tensors that lie row-major in memory, from multiples of 128 bytes on:
{tensors} */
CUresult {name}_run(const struct_ *kernel, {parameters}, CUstream stream);
CUresult {name}_unload(struct_ *kernel);

#endif
"""
_TABLES = """\
/* {what} */
#include "{name}.h"

#include <string.h>

static const unsigned char image[] = {{
{image}
}};
static const char *const names[] = {{{names}}};

typedef struct {{ /* a tensor as the DMA engine is told of it; tensor -1: it is not */
  int tensor, type, dims, swizzle, promotion;
  cuuint64_t sizes[{dims}], strides[{dims}];
  cuuint32_t box[{dims}], steps[{dims}];
}} Map;
static const Map maps[] = {{
{maps}
}};
typedef struct {{
  int function;
  unsigned grid, block, shared, cluster, cooperative;
  int tensors, maps, numbers; /* how many */
  int tensor[{most_tensors}], map[{most_maps}], number[{most_numbers}];
}} Call;
static const Call calls[] = {{
{calls}
}};
"""
_FUNCTIONS = """
CUresult {name}_load(struct_ *kernel) {{
  CUresult failed = cuModuleLoadData(&kernel->module, image);
  for (int n = 0; !failed && n < {functions}; ++n)
    failed = cuModuleGetFunction(&kernel->functions[n], kernel->module, names[n]);
  for (size_t n = 0; !failed && n < sizeof calls / sizeof *calls; ++n)
    if (calls[n].shared > {plain}) /* what a thread block may have without asking */
      failed = cuFuncSetAttribute(kernel->functions[calls[n].function],
                                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, calls[n].shared);
  return failed;
}}

static CUresult describe(const Map *map, const CUdeviceptr *tensors, CUtensorMap *to) {{
  memset(to, 0, sizeof *to);
  if (map->tensor < 0) return CUDA_SUCCESS;
  return cuTensorMapEncodeTiled(
      to, (CUtensorMapDataType)map->type, map->dims, (void *)tensors[map->tensor], map->sizes,
      map->strides, map->box, map->steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      (CUtensorMapSwizzle)map->swizzle, (CUtensorMapL2promotion)map->promotion,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}}

CUresult {name}_run(const struct_ *kernel, {parameters}, CUstream stream) {{
  CUdeviceptr tensors[] = {{{pointers}}};
  CUresult failed = CUDA_SUCCESS;
  for (size_t n = 0; !failed && n < sizeof calls / sizeof *calls; ++n) {{
    Call call = calls[n];
    CUtensorMap described[{most_maps}];
    void *arguments[{most_arguments}];
    int count = 0;
    if (!call.grid) continue;
    for (int i = 0; i < call.tensors; ++i) arguments[count++] = &tensors[call.tensor[i]];
    for (int i = 0; !failed && i < call.maps; ++i) {{
      failed = describe(&maps[call.map[i]], tensors, &described[i]);
      arguments[count++] = &described[i];
    }}
    for (int i = 0; i < call.numbers; ++i) arguments[count++] = &call.number[i];
    CUlaunchAttribute attribute = {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {{call.cluster, 1, 1}}}};
    if (call.cooperative)
      attribute = (CUlaunchAttribute){{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1}};
    CUlaunchConfig config = {{.gridDimX = call.grid, .gridDimY = 1, .gridDimZ = 1,
                             .blockDimX = call.block, .blockDimY = 1, .blockDimZ = 1,
                             .sharedMemBytes = call.shared, .hStream = stream,
                             .attrs = &attribute,
                             .numAttrs = call.cluster > 1 || call.cooperative}};
    if (!failed)
      failed = cuLaunchKernelEx(&config, kernel->functions[call.function], arguments, NULL);
  }}
  return failed;
}}

CUresult {name}_unload(struct_ *kernel) {{ return cuModuleUnload(kernel->module); }}
"""


def c_files(
    name: str,
    what: str,
    tensors: Sequence[tuple[Parameter, Sequence[int]]],
    calls: Sequence[Call],
    image: bytes,
) -> Mapping[str, str]:
    """A header and a C file by name. what: a line that describes the kernel. tensors: each with its
    shape, in the order of the calls."""
    names = list(dict.fromkeys(call.name for call in calls))
    maps = list(dict.fromkeys(m for call in calls for m in call.maps))
    most = {
        "most_tensors": max(len(call.tensors) for call in calls),
        "most_maps": max(1, *(len(call.maps) for call in calls)),
        "most_numbers": max(1, *(len(call.arguments) for call in calls)),
    }
    pointers = [f"{p.name}_ptr" for p, _ in tensors]
    told = {
        "what": what.replace("*/", "* /"),
        "name": name,
        "guard": f"{name.upper()}_KERNEL_H",
        "functions": len(names),
        "parameters": ", ".join(f"CUdeviceptr {p}" for p in pointers),
        "pointers": ", ".join(pointers),
        "tensors": "\n".join(
            f"   {p.name}_ptr: {p.dtype}{list(shape)}, {p.role}" for p, shape in tensors
        ),
        "image": "\n".join(
            "  " + ",".join(map(str, image[n : n + _BYTES])) + ","
            for n in range(0, len(image), _BYTES)
        ),
        "names": ", ".join(f'"{n}"' for n in names),
        "maps": "\n".join(map(_map, maps)) or _map(None),
        "calls": "\n".join(_call(call, names, maps) for call in calls),
        "dims": DIMS,
        "plain": 48 << 10,
        "most_arguments": sum(most.values()),
    } | most
    header, source = (
        text.format(**told).replace("struct_", f"{name}_kernel")
        for text in (_HEADER, _TABLES + _FUNCTIONS)
    )
    return {f"{name}.h": header, f"{name}.c": source}


def _map(given: Map | None) -> str:
    if given is None:
        return "  {.tensor = -1},"
    e = encoding(given)
    own = f".type = {e.type}, .dims = {len(e.sizes)}, .swizzle = {e.swizzle}, .promotion = {e.promotion}"
    return (
        f"  {{.tensor = {given.tensor}, {own}, .sizes = {_list(e.sizes)}, "
        f".strides = {_list(e.strides)}, .box = {_list(e.box)}, .steps = {_list(e.steps)}}},"
    )


def _call(call: Call, names: Sequence[str], maps: Sequence[Map | None]) -> str:
    own = (names.index(call.name), call.grid, call.block, call.shared)
    how = (call.cluster, int(call.cooperative))
    parts = (call.tensors, [maps.index(m) for m in call.maps], call.arguments)
    return f"  {{{', '.join(map(str, (*own, *how, *map(len, parts))))}, {', '.join(map(_list, parts))}}},"


def _list(numbers: Iterable[int]) -> str:
    return "{" + (", ".join(map(str, numbers)) or "0") + "}"
