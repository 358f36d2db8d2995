// Functions of floats, which clang has in a header of its own beside HIP's; ziglang does not bring it.
// Those that are no instruction are of AMD's device library, ocml.
#ifndef BACKENDS_HIP_DEVICE_CLANG_HIP_MATH_H_
#define BACKENDS_HIP_DEVICE_CLANG_HIP_MATH_H_

// What the device library asks of its user: precise functions, wavefronts of 64, denormals kept.
#define CONTROL(name, T, value)                                                          \
  extern "C" const __attribute__((constant, visibility("protected"))) T __oclc_##name = value;
CONTROL(unsafe_math_opt, unsigned char, 0)
CONTROL(finite_only_opt, unsigned char, 0)
CONTROL(daz_opt, unsigned char, 0)
CONTROL(correctly_rounded_sqrt32, unsigned char, 0)
CONTROL(wavefrontsize64, unsigned char, 1)
CONTROL(wavefrontsize_log2, int, 6)
CONTROL(ABI_version, int, 500)
#if defined(__gfx950__)
CONTROL(ISA_version, int, 9500)
#else
CONTROL(ISA_version, int, 9402)
#endif
#undef CONTROL

// Of the device alone, as clang has them: the C library may have the same on the host.
#define FUNCTION inline __attribute__((device))

#define INSTRUCTION(name) \
  FUNCTION float name##f(float x) { return __builtin_##name##f(x); }
INSTRUCTION(fabs)
INSTRUCTION(floor)
INSTRUCTION(ceil)
INSTRUCTION(rint)
INSTRUCTION(trunc)
INSTRUCTION(sqrt)
INSTRUCTION(exp)
INSTRUCTION(exp2)
INSTRUCTION(log)
INSTRUCTION(log2)
INSTRUCTION(log10)
#undef INSTRUCTION
FUNCTION float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
FUNCTION float fminf(float a, float b) { return __builtin_fminf(a, b); }
FUNCTION float rsqrtf(float x) { return __builtin_amdgcn_rsqf(x); }

#define LIBRARY(name)                                      \
  extern "C" __attribute__((device)) float __ocml_##name##_f32(float);  \
  FUNCTION float name##f(float x) { return __ocml_##name##_f32(x); }
LIBRARY(expm1)
LIBRARY(log1p)
LIBRARY(erf)
LIBRARY(erfc)
LIBRARY(tanh)
LIBRARY(sin)
LIBRARY(cos)
LIBRARY(tan)
LIBRARY(asin)
LIBRARY(acos)
LIBRARY(atan)
LIBRARY(sinh)
LIBRARY(cosh)
LIBRARY(asinh)
LIBRARY(acosh)
LIBRARY(atanh)
#undef LIBRARY
#define LIBRARY(name)                                            \
  extern "C" __attribute__((device)) float __ocml_##name##_f32(float, float); \
  FUNCTION float name##f(float a, float b) { return __ocml_##name##_f32(a, b); }
LIBRARY(atan2)
LIBRARY(fmod)
LIBRARY(pow)
#undef LIBRARY

// Of f64. Only those that take an operand's bits apart are instructions.
#define INSTRUCTION(name) \
  FUNCTION double name(double x) { return __builtin_##name(x); }
INSTRUCTION(fabs)
INSTRUCTION(floor)
INSTRUCTION(ceil)
INSTRUCTION(rint)
INSTRUCTION(trunc)
INSTRUCTION(sqrt)
#undef INSTRUCTION
FUNCTION double fmax(double a, double b) { return __builtin_fmax(a, b); }
FUNCTION double fmin(double a, double b) { return __builtin_fmin(a, b); }
#define LIBRARY(name)                                                     \
  extern "C" __attribute__((device)) double __ocml_##name##_f64(double);  \
  FUNCTION double name(double x) { return __ocml_##name##_f64(x); }
LIBRARY(rsqrt)
LIBRARY(exp)
LIBRARY(exp2)
LIBRARY(log)
LIBRARY(log2)
LIBRARY(log10)
LIBRARY(expm1)
LIBRARY(log1p)
LIBRARY(erf)
LIBRARY(erfc)
LIBRARY(tanh)
LIBRARY(sin)
LIBRARY(cos)
LIBRARY(tan)
LIBRARY(asin)
LIBRARY(acos)
LIBRARY(atan)
LIBRARY(sinh)
LIBRARY(cosh)
LIBRARY(asinh)
LIBRARY(acosh)
LIBRARY(atanh)
#undef LIBRARY
#define LIBRARY(name)                                                            \
  extern "C" __attribute__((device)) double __ocml_##name##_f64(double, double); \
  FUNCTION double name(double a, double b) { return __ocml_##name##_f64(a, b); }
LIBRARY(atan2)
LIBRARY(fmod)
LIBRARY(pow)
#undef LIBRARY
#undef FUNCTION

#endif  // BACKENDS_HIP_DEVICE_CLANG_HIP_MATH_H_
