// The special-function unit: functions from look-up tables.
#ifndef BACKENDS_SIM_NATIVE_TABLES_H_
#define BACKENDS_SIM_NATIVE_TABLES_H_

#include <vector>

#include "backends/sim/native/device/device.h"

namespace sim {

// Each function reduces its argument to a small range, looks up the nearest entry of a table of
// 2^bits, and corrects by a short polynomial in the distance to it. Results are within 1 ulp of
// f32; infinities, NaN, zeros and large arguments behave as in IEEE 754 and C.
class Tables {
 public:
  // `bits` is at least 5.
  explicit Tables(int bits);

  // out[i] = op(a[i]), or for pow op(a[i], b[i]), for an operation of the special-function unit.
  void apply(device::Op op, device::Index n, const float* a, const float* b, float* out) const;

  double exp(double x) const;
  double log(double x) const;
  double sqrt(double x) const;
  double rsqrt(double x) const;
  double recip(double x) const;
  double tanh(double x) const;
  double sigmoid(double x) const;
  double silu(double x) const;
  double erf(double x) const;
  double gelu(double x) const;  // x * (1 + erf(x / sqrt 2)) / 2
  double sin(float x) const;
  double cos(float x) const;
  double pow(double x, double y) const;
  double exp2(double x) const;
  double expm1(double x) const;
  double log2(double x) const;
  double log10(double x) const;
  double log1p(double x) const;
  double erfc(double x) const;
  double tan(float x) const;
  double asin(double x) const;
  double acos(double x) const;
  double atan(double x) const;
  double atan2(double y, double x) const;
  double sinh(double x) const;
  double cosh(double x) const;
  double asinh(double x) const;
  double acosh(double x) const;
  double atanh(double x) const;

 private:
  // x = 2^exponent * c * (1 + r), with 1 / c, log c, ... in the table.
  struct Reduced {
    int exponent;
    std::size_t entry;
    double r;
  };
  Reduced reduce(double x) const;
  double exp_reduced(double x) const;  // no special cases
  double scaled_erfc(double x) const;  // exp(x^2) * erfc(x), for 0 <= x < kErfcEnd
  double atan_ratio(double x) const;   // atan(x) / x, for 0 <= x <= 1
  double sine(double angle, int quarter) const;

  static constexpr double kErfcEnd = 11;

  // A function by pieces: on each of equal intervals a cubic in the distance to its middle.
  struct Pieces {
    double scale = 1;  // intervals a unit
    std::vector<double> coefficients;
    template <class F>
    void build(double end, int intervals, F f);
    double operator()(double x) const;
  };

  int bits_;
  std::vector<double> exp2_;     // 2^(i / size)
  std::vector<double> inverse_;  // 1 / c
  std::vector<double> log_;      // log c
  std::vector<double> root_;     // sqrt c, then sqrt 2c
  std::vector<double> sin_;      // of i * (pi/4) / size
  std::vector<double> cos_;
  Pieces erfc_pieces_;
  Pieces tanh_pieces_;
  Pieces erf_pieces_;
  Pieces atan_pieces_;
};

// The tables of 2^bits entries, made once in a process: they take longer than a small simulation.
const Tables& tables_of(int bits);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_TABLES_H_
