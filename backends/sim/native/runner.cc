#include "backends/sim/native/runner.h"

#include "backends/sim/native/error.h"
#include "backends/sim/native/host.h"

namespace sim {

Runner::Runner(int socket) : line_(socket) { require_good(); }

std::vector<Portion> Runner::launch(const LaunchCall& call, const Shape& shape) {
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
  std::vector<Portion> first;
  for (Index i = 0; i < shape.count; ++i) first.push_back(portion());
  return first;
}

std::vector<Portion> Runner::more(const std::vector<Going>& programs) {
  Writer request;
  request.put(Request::more);
  for (const Going& program : programs) {
    request.put(program.element);
    request.put(program.number);
  }
  ask(request);
  std::vector<Portion> next;
  for (std::size_t i = 0; i < programs.size(); ++i) next.push_back(portion());
  return next;
}

void Runner::ask(const Writer& request) {
  if (!line_.put(request, {}) || !line_.flush())
    throw KernelEnded("the process that runs the kernel has ended");
}

std::vector<std::byte> Runner::answer() {
  std::vector<std::byte> found;
  if (!line_.get(found)) throw KernelEnded("the process that runs the kernel has ended");
  return found;
}

Portion Runner::portion() {
  Portion found;
  found.commands.replace(answer());
  found.asked = found.commands.asked();
  return found;
}

void Runner::require_good() {
  std::vector<std::byte> said = answer();
  if (said.empty()) return;
  Reader reader;
  reader.replace(std::move(said));
  fail(reader.text());
}

}  // namespace sim
