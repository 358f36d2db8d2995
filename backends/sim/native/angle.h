// Angles modulo a quarter turn, exact for arguments of any size.
#ifndef BACKENDS_SIM_NATIVE_ANGLE_H_
#define BACKENDS_SIM_NATIVE_ANGLE_H_

namespace sim {

// x = (quarter + 4 n) * pi / 2 + rest, with |rest| <= pi / 4.
struct Angle {
  int quarter;
  double rest;
};
// `x` must be finite.
Angle reduce_angle(float x);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_ANGLE_H_
