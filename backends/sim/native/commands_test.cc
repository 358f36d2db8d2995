// Hostile commands: random, huge and malformed streams, as the process that runs a kernel's code
// may send them. Each simulation ends, by itself or with the simulator's own error.
//
//   commands_test [STREAMS] [FIRST]
//
// What this is worth shows under sanitizers: `fuzz_slow_test.py` builds it with them.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>

#include "backends/sim/native/error.h"
#include "backends/sim/native/expect.h"
#include "backends/sim/native/hostile_program.h"
#include "backends/sim/native/simulation.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

constexpr Time kMostCycles = 100'000;

class Hostile final : public Programs {
 public:
  Hostile(Random& random, const std::vector<TensorInfo>& tensors, Index wild)
      : random_(random), tensors_(tensors), wild_(wild) {}
  std::vector<Portion> launch(const LaunchCall&, const Shape& shape) override {
    std::vector<Portion> all;
    const bool alike = random_.one_in(2);  // so that sends meet receives, and barriers are passed
    for (Index i = 0; i < shape.count; ++i)
      all.push_back(alike && i > 0 ? all[0] : portion());
    return all;
  }
  std::vector<Portion> more(const std::vector<Going>& programs) override {
    std::vector<Portion> all(programs.size());
    for (Portion& next : all)
      if (random_.one_in(4)) next = portion();
    return all;
  }

 private:
  // What it says that it waits for has nothing to do with what its commands ask for.
  Portion portion() {
    Portion made;
    made.commands.replace(Program(random_, tensors_, wild_).made());
    made.asked.waits = random_.one_in(8);
    made.asked.from.id = static_cast<std::uint32_t>(
        random_.below(static_cast<Index>(tensors_.size()) + 2));
    made.asked.position.size = static_cast<int>(random_.below(device::kMaxRank + 1));
    for (Index& at : made.asked.position.at) at = random_.below(6) - 1;
    return made;
  }

  Random& random_;
  const std::vector<TensorInfo>& tensors_;
  Index wild_;
};

Spec small() {
  Spec spec;
  spec.clock_hz = 1e9;
  spec.rows = spec.columns = 2;
  spec.launch_cycles = 10;
  spec.issue_cycles = 2;
  spec.queue_length = 4;
  spec.local_bytes = 8192;
  spec.dma = {64, 12, 256, 1};
  spec.dram = {2, 9.5, 20, 256};
  spec.shared = {16384, 4, 125, 6, 256};
  spec.mesh = {128, 2};
  Rates rates;
  rates.fill(8);
  spec.matrix = {4, 4, 3, rates};
  spec.vector = {2, rates};
  spec.special = {3, rates};
  spec.table_bits = 5;
  spec.reduction = {2, rates};
  return spec;
}

// Tensors of every dtype, of random values or bits, some of them empty.
struct Tensors {
  explicit Tensors(Random& random) {
    for (int i = 0; i < 3 * kDtypes; ++i) {
      const Dtype dtype = kTypes[i / 3];
      TensorInfo tensor;
      tensor.name = name_of(dtype);
      tensor.dtype = dtype;
      tensor.rank = i % 3 == 0 ? static_cast<int>(random.below(3)) : 2 + i % 3;
      Index elements = 1;
      for (int d = tensor.rank - 1; d >= 0; --d) {
        tensor.extent[d] = random.one_in(30) ? 0 : 2 + random.below(5);
        tensor.stride[d] = elements;
        elements *= tensor.extent[d];
      }
      tensor.bytes = elements * size_of(dtype);
      tensor.input = random.one_in(3);
      // Of exactly its size, so that a sanitizer sees what is beside it.
      memory.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(tensor.bytes)));
      const bool small = random.one_in(2);
      for (Index i = 0; i < tensor.bytes; ++i)
        memory.back()[static_cast<std::size_t>(i)] =
            static_cast<std::byte>(small ? i % size_of(dtype) == 0 && random.one_in(2)
                                         : random.bits());
      tensor.data = memory.back().get();
      infos.push_back(tensor);
    }
  }
  std::vector<TensorInfo> infos;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

// How a simulation ended: "", or the simulator's error.
std::string ended(std::uint64_t seed) {
  Random random(seed);
  Tensors tensors(random);
  constexpr Index kWild[] = {1'000'000, 5'000, 1'500, 400, 100};
  Hostile programs(random, tensors.infos, random.of(kWild));
  const Options options{!random.one_in(8), !random.one_in(3), kMostCycles, 1'000'000};
  LaunchCall call{"k", {}, {}};
  for (std::size_t i = 0; i < tensors.infos.size(); ++i) call.tensors.push_back(i);
  try {
    simulate(small(), options, programs, {call, call}, tensors.infos, "");
  } catch (const SimulationError& error) {
    return error.what();
  }
  return "";
}

// What an error is about: its text without numbers and names.
std::string kind_of(const std::string& error) {
  std::string kind;
  for (const char c : error.substr(error.rfind(": ") == std::string::npos ? 0 : error.rfind(": ")))
    if ((c >= 'a' && c <= 'z') || c == ' ') kind += c;
  return kind;
}

int run(std::uint64_t streams, std::uint64_t first) {
  const bool says = std::getenv("FUZZ_SAYS") != nullptr;
  std::map<std::string, int> kinds;
  for (std::uint64_t seed = first; seed < first + streams; ++seed) {
    const auto number = static_cast<unsigned long long>(seed);
    if (says) std::fprintf(stderr, "stream %llu\n", number);
    try {
      ++kinds[kind_of(ended(seed))];
    } catch (const std::exception& other) {
      std::fprintf(stderr, "stream %llu: %s\n", number, other.what());
      return 1;
    }
  }
  if (says)
    for (const auto& [kind, count] : kinds) std::fprintf(stderr, "%7d %s\n", count, kind.c_str());
  std::printf("%llu streams, %d without an error, %zu kinds of errors\n",
              static_cast<unsigned long long>(streams), kinds[""], kinds.size() - 1);
  // Streams that all fail, or never, would test little.
  EXPECT(kinds[""] > 0);
  EXPECT(kinds.size() > 20);
  return failures > 0;
}

}  // namespace
}  // namespace sim

int main(int count, char** words) {
  const auto number = [&](int at, std::uint64_t otherwise) {
    return count > at ? std::strtoull(words[at], nullptr, 10) : otherwise;
  };
  return sim::run(number(1, 2000), number(2, 0));
}
