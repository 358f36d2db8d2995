// Random numbers that are functions of a seed and a counter: Philox4x32-10 of Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#ifndef BACKENDS_SIM_NATIVE_PHILOX_H_
#define BACKENDS_SIM_NATIVE_PHILOX_H_

#include <array>
#include <cstdint>

namespace sim {

inline constexpr int kPhiloxRounds = 10;

inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// A multiple of 2^-24 in [0, 1): the upper bits of the first word of the block that has the
// counter in its lower two words.
inline float uniform(std::int64_t seed, std::int64_t counter) {
  const auto low = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
  const auto block = philox({low(counter), low(counter >> 32), 0, 0}, {low(seed), low(seed >> 32)});
  return static_cast<float>(block[0] >> 8) * 0x1p-24f;
}

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_PHILOX_H_
