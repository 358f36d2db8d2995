// Checks for the tests: a failed one is printed and counted.
#ifndef BACKENDS_SIM_NATIVE_EXPECT_H_
#define BACKENDS_SIM_NATIVE_EXPECT_H_

#include <cstdio>
#include <string>

namespace sim {

inline int failures = 0;

inline void expect(bool holds, const char* what, const char* file, int line) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
}

// Runs `work`; the message of the error it throws, or "" if it throws none.
template <class Error, class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace sim

#define EXPECT(holds) ::sim::expect((holds), #holds, __FILE__, __LINE__)

#endif  // BACKENDS_SIM_NATIVE_EXPECT_H_
