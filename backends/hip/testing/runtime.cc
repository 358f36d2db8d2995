// HIP's run time for a program's host code, which prints each launch. RUN: the function that launches;
// POINTERS: its tensors; KINDS: of each launch, which arguments are pointers (p) and integers (i);
// FAILING: the launch that fails, 0: none.
#include <cstddef>
#include <cstdio>
#include <map>

struct dim3 { unsigned x, y, z; };
struct Configuration { dim3 grid, block; size_t shared; void* stream; };
static Configuration pushed;
static std::map<const void*, const char*> names;
static const char* const kinds[] = {KINDS};
static int launched;

extern "C" {
char __hip_fatbin[1];
void** __hipRegisterFatBinary(const void*) { return nullptr; }
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterVar(void**, void*, char*, char*, int, size_t, int, int) {}
void __hipRegisterFunction(void**, const void* stub, char*, const char* name, unsigned, void*, void*, void*,
                           void*, int*) {
  names[stub] = name;
}
int __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}
int __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void** stream) {
  *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared, *stream = pushed.stream;
  return 0;
}
int hipLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  printf("%s %u %u %u %u %u %u %zu %zu", names[stub], grid.x, grid.y, grid.z, block.x, block.y, block.z,
         shared, size_t(stream));
  for (const char* kind = kinds[launched++]; *kind; ++kind, ++arguments)
    printf(" %zd", *kind == 'p' ? *(ptrdiff_t*)*arguments : ptrdiff_t(*(int*)*arguments));
  printf("\n");
  return 0;
}
int hipGetLastError() { return launched == FAILING ? 719 : 0; }
int RUN(...);
}

int main() { return RUN(POINTERS, (void*)5) != (FAILING ? 719 : 0); }
