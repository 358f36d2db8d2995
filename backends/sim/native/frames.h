// Frames on a socket between the simulator and the process that runs a kernel's code.
#ifndef BACKENDS_SIM_NATIVE_FRAMES_H_
#define BACKENDS_SIM_NATIVE_FRAMES_H_

#include <cstddef>
#include <vector>

namespace sim {

inline constexpr std::size_t kMostInFrame = 16 << 20;

// False where the other side is gone, or the frame is too large.
bool send_frame(int socket, const std::byte* data, std::size_t size);
bool receive_frame(int socket, std::vector<std::byte>& into);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_FRAMES_H_
