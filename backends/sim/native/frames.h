// Frames on a socket between the simulator and the process that runs a kernel's code.
#ifndef BACKENDS_SIM_NATIVE_FRAMES_H_
#define BACKENDS_SIM_NATIVE_FRAMES_H_

#include <cstddef>
#include <vector>

#include "backends/sim/native/stream.h"

namespace sim {

inline constexpr std::size_t kMostInFrame = 16 << 20;

// One end of the socket. What is put and what is got goes through buffers, as a system call takes longer
// than most frames. Each function gives false where the other side is gone, or a frame is too large.
class Line {
 public:
  explicit Line(int socket) : socket_(socket), in_(kBuffer) {}

  // A frame of two parts, which is sent by `flush` at the latest.
  bool put(const Writer& head, const Writer& body);
  bool flush();
  bool get(std::vector<std::byte>& into);

 private:
  static constexpr std::size_t kBuffer = 64 << 10;

  bool send_all(const std::byte* data, std::size_t size);
  bool take(std::byte* into, std::size_t size);

  int socket_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::size_t at_ = 0, end_ = 0;  // of what was received and not taken
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_FRAMES_H_
