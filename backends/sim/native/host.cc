#include "backends/sim/native/host.h"

#include <memory>
#include <optional>
#include <vector>

#include "backends/sim/native/error.h"
#include "backends/sim/native/frames.h"
#include "backends/sim/native/library.h"
#include "backends/sim/native/recorder.h"

namespace sim {
namespace {

using device::Index;

class Host {
 public:
  explicit Host(int socket) : line_(socket) {}

  bool get(std::vector<std::byte>& request) { return line_.get(request); }

  // Loads the library, and says what is wrong with it.
  bool open(const std::string& path) {
    try {
      library_.emplace(path);
    } catch (const SimulationError& error) {
      return say(error.what());
    }
    return say("");
  }

  // Answers a request; false where the other side is gone.
  bool serve(Reader& request) {
    switch (request.value_of<Request>()) {
      case Request::launch: return launch(request);
      default: return more(request);
    }
  }

 private:
  bool say(const std::string& wrong) {
    Writer said;
    if (!wrong.empty()) said.put(std::string_view(wrong));
    return line_.put(said, {}) && line_.flush();
  }

  bool launch(Reader& request) {
    const std::string name = long_text(request);
    sizes_.resize(request.number<std::uint32_t>());
    for (Index& size : sizes_) size = request.number<Index>();
    shape_.count = request.number<Index>();
    shape_.rows = request.number<Index>();
    shape_.columns = request.number<Index>();
    shape_.most_scalars = request.number<Index>();
    recorders_.clear();
    device::Launch kernel = nullptr;
    try {
      kernel = library_->find(name);
    } catch (const SimulationError& error) {
      return say(error.what());
    }
    if (!say("")) return false;
    for (Index i = 0; i < shape_.count; ++i) {
      recorders_.push_back(std::make_unique<Recorder>(shape_, i));
      recorders_.back()->start(kernel(
          *recorders_.back(), device::Args{sizes_.data(), static_cast<Index>(sizes_.size())}));
      if (!proceed(i, 0)) return false;
    }
    return line_.flush();
  }

  bool more(Reader& request) {
    while (!request.empty()) {
      const auto element = request.number<Index>();
      if (!proceed(element, request.number<Index>())) return false;
    }
    return line_.flush();
  }

  bool proceed(Index element, Index number) {
    Recorder& recorder = *recorders_[static_cast<std::size_t>(element)];
    recorder.run(number);
    Writer head;
    recorder.put_asked(head);
    return line_.put(head, recorder.written());
  }

  Line line_;
  std::optional<Library> library_;  // outlives the programs
  std::vector<Index> sizes_;
  Shape shape_{};
  std::vector<std::unique_ptr<Recorder>> recorders_;
};

}  // namespace

void put_long(Writer& into, const std::string& text) {
  into.put(static_cast<std::uint32_t>(text.size()));
  for (const char c : text) into.put(c);
}

std::string long_text(Reader& from) {
  std::string text(from.number<std::uint32_t>(), ' ');
  for (char& c : text) c = from.number<char>();
  return text;
}

void serve_kernel(int socket, const std::string& library) {
  Host host(socket);
  if (!host.open(library)) return;
  std::vector<std::byte> received;
  while (host.get(received)) {
    Reader request;
    request.replace(std::move(received));
    if (!host.serve(request)) return;
    received.clear();
  }
}

}  // namespace sim
