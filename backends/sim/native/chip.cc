#include "backends/sim/native/chip.h"

#include "backends/sim/native/element.h"

namespace sim {

Chip::Chip(const Spec& spec, const Options& options, Index global_bytes, Programs& programs)
    : spec(spec), options(options), programs(programs), mesh(spec.mesh, spec.rows, spec.columns),
      memory(this->spec, events, mesh, global_bytes),
      tables(tables_of(static_cast<int>(spec.table_bits))),
      elements(static_cast<std::size_t>(spec.rows * spec.columns)) {}

Chip::~Chip() = default;

}  // namespace sim
