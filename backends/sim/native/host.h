// The process that runs a kernel's code: it loads the library, runs the programs ahead, and sends their
// commands. It has no tensor, no result and no clock of the simulation.
#ifndef BACKENDS_SIM_NATIVE_HOST_H_
#define BACKENDS_SIM_NATIVE_HOST_H_

#include <cstdint>
#include <string>

#include "backends/sim/native/stream.h"

namespace sim {

enum class Request : std::uint8_t { launch, more };

void put_long(Writer& into, const std::string& text);
std::string long_text(Reader& from);

// Loads a kernel's library, and serves a Runner at the other end of the socket until that closes it.
void serve_kernel(int socket, const std::string& library);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_HOST_H_
