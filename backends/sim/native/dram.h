// DRAM: channels of limited bandwidth behind the shared memory.
#ifndef BACKENDS_SIM_NATIVE_DRAM_H_
#define BACKENDS_SIM_NATIVE_DRAM_H_

#include <vector>

#include "backends/sim/native/pipe.h"
#include "backends/sim/native/spec.h"

namespace sim {

// Spreads consecutive stripes of memory over `ways`, and strides that are multiples of `ways`
// too; any `ways` consecutive stripes of an aligned group go to different ones.
inline Index interleave(Index stripe, Index ways) {
  return (stripe + stripe / ways + stripe / (ways * ways)) % ways;
}

class Dram {
 public:
  explicit Dram(const DramSpec& spec)
      : spec_(spec), channels_(static_cast<std::size_t>(spec.channels)) {}

  // Gives the cycle in which the bytes have been read: latency, and its turn on the channel.
  Time read(Time at, Index address, Index bytes) {
    read_bytes_ += bytes;
    return transfer(at, address, bytes) + spec_.latency_cycles;
  }
  // Gives the cycle in which the channel has taken the bytes.
  Time write(Time at, Index address, Index bytes) {
    write_bytes_ += bytes;
    return transfer(at, address, bytes);
  }

  Index read_bytes() const { return read_bytes_; }
  Index write_bytes() const { return write_bytes_; }
  Ticks busy() const {
    Ticks sum = 0;
    for (const Pipe& channel : channels_) sum += channel.busy();
    return sum;
  }

 private:
  Time transfer(Time at, Index address, Index bytes) {
    const Index channel = interleave(address / spec_.interleave_bytes, spec_.channels);
    return cycles(channels_[static_cast<std::size_t>(channel)].reserve(
        ticks(at), ticks_for(static_cast<double>(bytes), spec_.bytes_per_cycle)));
  }

  DramSpec spec_;
  std::vector<Pipe> channels_;
  Index read_bytes_ = 0;
  Index write_bytes_ = 0;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_DRAM_H_
