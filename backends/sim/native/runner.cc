#include "backends/sim/native/runner.h"

#include "backends/sim/native/error.h"
#include "backends/sim/native/frames.h"
#include "backends/sim/native/host.h"

namespace sim {

Runner::Runner(int socket) : socket_(socket) { require_good(); }

std::vector<Bytes> Runner::launch(const LaunchCall& call, const Shape& shape) {
  Writer request;
  request.put(Request::launch);
  put_long(request, call.kernel);
  request.put(static_cast<std::uint32_t>(call.sizes.size()));
  for (const Index size : call.sizes) request.put(size);
  request.put(shape.count);
  request.put(shape.rows);
  request.put(shape.columns);
  request.put(shape.most_scalars);
  ask(request);
  require_good();
  std::vector<Bytes> first;
  for (Index i = 0; i < shape.count; ++i) first.push_back(answer());
  return first;
}

Bytes Runner::more(Index element, Index number) {
  Writer request;
  request.put(Request::more);
  request.put(element);
  request.put(number);
  ask(request);
  return answer();
}

void Runner::ask(const Writer& request) {
  if (!send_frame(socket_, request.data(), request.size()))
    throw KernelEnded("the process that runs the kernel has ended");
}

Bytes Runner::answer() {
  Bytes found;
  if (!receive_frame(socket_, found))
    throw KernelEnded("the process that runs the kernel has ended");
  return found;
}

void Runner::require_good() {
  const Bytes said = answer();
  if (said.empty()) return;
  Reader reader;
  reader.replace(said);
  fail(reader.text());
}

}  // namespace sim
