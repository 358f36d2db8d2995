// Races in global memory: what one processing element stores, and another loads or stores with no
// barrier and no launch in between.
#ifndef BACKENDS_SIM_NATIVE_RACES_H_
#define BACKENDS_SIM_NATIVE_RACES_H_

#include <cstdint>
#include <vector>

#include "backends/sim/native/tensor.h"

namespace sim {

enum class Move { load, store, add };

class Races {
 public:
  // A launch begins, or everybody has passed a barrier.
  void begin_phase() { ++phase_; }

  // The processing element `pe` moves `count` consecutive elements. Inputs of a run are not
  // tracked, because nobody stores to them. Throws SimulationError for a race, and for a store to
  // an input.
  void touch(const TensorInfo& tensor, device::Index first, device::Index count, Move how,
             device::Index pe);

 private:
  // Who touched an element in the last phase in which anybody did. Additions commute.
  struct Mark {
    std::uint32_t written = 0, read = 0;  // phases; 0: never
    std::uint16_t writer = 0, reader = 0;
    bool added = false;
  };
  static constexpr std::uint16_t kMany = 0xffff;

  void load(Mark& mark, std::uint16_t pe, const TensorInfo& tensor, device::Index element);
  void store(Mark& mark, std::uint16_t pe, bool adds, const TensorInfo& tensor,
             device::Index element);

  std::uint32_t phase_ = 0;
  std::vector<std::vector<Mark>> marks_;  // by tensor number, then element
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_RACES_H_
