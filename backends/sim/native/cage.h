// What the process that runs a kernel's code gives up before it loads that code.
#ifndef BACKENDS_SIM_NATIVE_CAGE_H_
#define BACKENDS_SIM_NATIVE_CAGE_H_

#include <string>

namespace sim {

// For good, as far as the kernel lets it: all files but the library, signals to and memory of other
// processes (Landlock), all system calls but those on memory, on the socket, and those that load the
// library or end the process (seccomp).
void shut_in(const std::string& library, int socket);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_CAGE_H_
