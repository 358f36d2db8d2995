// The machine's description, from tables of named numbers to a Spec.
#ifndef BACKENDS_SIM_NATIVE_MACHINE_READER_H_
#define BACKENDS_SIM_NATIVE_MACHINE_READER_H_

#include <map>
#include <optional>
#include <string>

#include "backends/sim/native/spec.h"

namespace sim {

// One entry of a table: a number, or a table, or (with neither) something else.
struct Field {
  std::optional<double> number;
  std::optional<std::map<std::string, Field>> table;
  std::string shown;  // for messages
};
using Fields = std::map<std::string, Field>;

// `machine` is the [sim] table of a target with local_bytes beside it. Throws SpecError, which
// names the field, for one that is missing, unknown, or no number in its range.
Spec read_machine(const Fields& machine);

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_MACHINE_READER_H_
