#include "backends/sim/native/philox.h"

#include "backends/sim/native/expect.h"

namespace sim {
namespace {

using Block = std::array<std::uint32_t, 4>;

// kat_vectors of Random123.
void blocks_are_the_known_ones() {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT((philox({0, 0, 0, 0}, {0, 0}) ==
          Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT((philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
          Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

void a_number_is_the_upper_bits_of_the_first_word() {
  EXPECT(uniform(0, 0) == static_cast<float>(0x6627e8) / 16777216.0f);
}

}  // namespace
}  // namespace sim

int main() {
  sim::blocks_are_the_known_ones();
  sim::a_number_is_the_upper_bits_of_the_first_word();
  return sim::failures != 0;
}
