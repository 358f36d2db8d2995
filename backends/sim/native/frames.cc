#include "backends/sim/native/frames.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace sim {
namespace {

bool send_all(int socket, const std::byte* data, std::size_t size, int flags) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, flags | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(socket, data, size, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

bool send_frame(int socket, const std::byte* data, std::size_t size) {
  if (size > kMostInFrame) return false;
  const auto length = static_cast<std::uint32_t>(size);
  return send_all(socket, reinterpret_cast<const std::byte*>(&length), sizeof length, MSG_MORE) &&
         send_all(socket, data, size, 0);
}

bool receive_frame(int socket, std::vector<std::byte>& into) {
  std::uint32_t length = 0;
  if (!receive_all(socket, reinterpret_cast<std::byte*>(&length), sizeof length)) return false;
  if (length > kMostInFrame) return false;
  into.resize(length);
  return receive_all(socket, into.data(), length);
}

}  // namespace sim
