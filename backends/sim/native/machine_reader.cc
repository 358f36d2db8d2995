#include "backends/sim/native/machine_reader.h"

#include <cmath>
#include <set>
#include <string>

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

// One table; remembers what was read, so that what nobody reads is refused.
class Table {
 public:
  Table(const Fields& fields, std::string prefix) : fields_(fields), prefix_(std::move(prefix)) {}

  double rate(const char* name) {
    const double value = number(name);
    if (!(value > 0)) refuse(name, "must be greater than 0");
    return value;
  }
  // A number that may be 0 but has no fraction.
  Index whole(const char* name) {
    const double value = number(name);
    if (value < 0 || value != std::floor(value)) refuse(name, "must be a whole number, 0 or more");
    return static_cast<Index>(value);
  }
  Index size(const char* name) {
    const Index value = whole(name);
    if (value == 0) refuse(name, "must be at least 1");
    return value;
  }
  double amount(const char* name) {
    const double value = number(name);
    if (!(value >= 0)) refuse(name, "must be 0 or more");
    return value;
  }
  Table table(const char* name) {
    const Field& field = get(name);
    if (!field.table) refuse(name, "must be a table");
    return Table(*field.table, prefix_ + name + ".");
  }
  Rates rates(const char* name) {
    Table own = table(name);
    Rates rates{};
    for (int i = 0; i < kDtypes; ++i)
      if (own.fields_.contains(kNames[i])) rates[static_cast<std::size_t>(i)] = own.rate(kNames[i]);
    own.end();
    // Integers that are only stored are widened on the way, unless a machine says otherwise.
    for (Dtype dtype : {Dtype::i16, Dtype::i8, Dtype::u8}) {
      double& own_rate = rates[static_cast<std::size_t>(dtype)];
      if (own_rate == 0) own_rate = rates[static_cast<std::size_t>(Dtype::i32)];
    }
    return rates;
  }
  void end() const {
    for (const auto& [name, field] : fields_)
      if (!read_.contains(name)) throw SpecError(prefix_ + name + " is not a field of a machine");
  }

 private:
  [[noreturn]] void refuse(const char* name, const char* why) const {
    throw SpecError(text(prefix_, name, " = ", fields_.at(name).shown, ": ", why));
  }
  const Field& get(const char* name) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) throw SpecError(text("the machine lacks ", prefix_, name));
    read_.insert(name);
    return found->second;
  }
  double number(const char* name) {
    const Field& field = get(name);
    if (!field.number) refuse(name, "must be a number");
    return *field.number;
  }

  const Fields& fields_;
  std::string prefix_;
  std::set<std::string> read_;
};

LanesSpec lanes(Table table) {
  LanesSpec spec;
  spec.startup_cycles = table.whole("startup_cycles");
  spec.lanes = table.rates("lanes");
  table.end();
  return spec;
}

void read_memory(Table& machine, Spec& spec) {
  Table dma = machine.table("dma");
  spec.dma = {dma.rate("bytes_per_cycle"), dma.whole("startup_cycles"), dma.size("chunk_bytes"),
              dma.amount("row_cycles")};
  dma.end();
  Table dram = machine.table("dram");
  spec.dram = {dram.size("channels"), dram.rate("bytes_per_cycle"), dram.whole("latency_cycles"),
               dram.size("interleave_bytes")};
  dram.end();
  Table shared = machine.table("shared");
  spec.shared = {shared.size("bytes"), shared.size("banks"), shared.rate("bytes_per_cycle"),
                 shared.whole("latency_cycles"), shared.size("block_bytes")};
  shared.end();
  Table mesh = machine.table("mesh");
  spec.mesh = {mesh.rate("bytes_per_cycle"), mesh.whole("hop_cycles")};
  mesh.end();
}

void read_engines(Table& machine, Spec& spec) {
  Table matrix = machine.table("matrix");
  spec.matrix = {matrix.size("rows"), matrix.size("columns"), matrix.whole("startup_cycles"),
                 matrix.rates("depth_per_cycle")};
  matrix.end();
  spec.vector = lanes(machine.table("vector"));
  Table special = machine.table("special");
  spec.table_bits = special.size("table_bits");
  spec.special = {special.whole("startup_cycles"), special.rates("lanes")};
  special.end();
  spec.reduction = lanes(machine.table("reduction"));
}

}  // namespace

Spec read_machine(const Fields& fields) {
  Table machine(fields, "");
  Spec spec;
  spec.clock_hz = machine.rate("clock_hz");
  spec.rows = machine.size("rows");
  spec.columns = machine.size("columns");
  spec.launch_cycles = machine.whole("launch_cycles");
  spec.issue_cycles = machine.whole("issue_cycles");
  spec.queue_length = machine.size("queue_length");
  spec.local_bytes = machine.size("local_bytes");
  read_memory(machine, spec);
  read_engines(machine, spec);
  machine.end();
  check(spec);
  return spec;
}

}  // namespace sim
