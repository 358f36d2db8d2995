#include "backends/sim/native/frames.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sim {
namespace {

// How many bytes came: at least one, or 0 where the other side is gone.
std::size_t received(int socket, std::byte* into, std::size_t most) {
  while (true) {
    const ssize_t got = recv(socket, into, most, 0);
    if (got < 0 && errno == EINTR) continue;
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
}

}  // namespace

bool Line::put(const Writer& head, const Writer& body) {
  if (head.size() > kMostInFrame || body.size() > kMostInFrame - head.size()) return false;
  const auto length = static_cast<std::uint32_t>(head.size() + body.size());
  const auto* first = reinterpret_cast<const std::byte*>(&length);
  out_.insert(out_.end(), first, first + sizeof length);
  out_.insert(out_.end(), head.data(), head.data() + head.size());
  out_.insert(out_.end(), body.data(), body.data() + body.size());
  return out_.size() < kBuffer || flush();
}

bool Line::flush() {
  const bool sent = send_all(out_.data(), out_.size());
  out_.clear();
  return sent;
}

bool Line::get(std::vector<std::byte>& into) {
  std::uint32_t length = 0;
  if (!take(reinterpret_cast<std::byte*>(&length), sizeof length)) return false;
  if (length > kMostInFrame) return false;
  into.resize(length);
  return take(into.data(), length);
}

bool Line::send_all(const std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket_, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool Line::take(std::byte* into, std::size_t size) {
  while (size > 0) {
    if (at_ == end_) {
      at_ = 0;
      end_ = received(socket_, in_.data(), in_.size());
      if (end_ == 0) return false;
    }
    const std::size_t some = std::min(size, end_ - at_);
    std::memcpy(into, in_.data() + at_, some);
    at_ += some;
    into += some;
    size -= some;
  }
  return true;
}

}  // namespace sim
