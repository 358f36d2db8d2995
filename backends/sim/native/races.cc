#include "backends/sim/native/races.h"

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {

using device::Index;

namespace {

[[noreturn]] void race(const TensorInfo& tensor, Index element, const char* what,
                       const char* other) {
  fail("it ", what, " element ", element, " of '", tensor.name, "', which another PE has ", other,
       "; a barrier or the end of a launch must lie between them");
}

}  // namespace

void Races::touch(const TensorInfo& tensor, Index first, Index count, Move how, Index pe) {
  if (tensor.input) {
    if (how != Move::load) fail("'", tensor.name, "' is an input; a kernel does not change it");
    return;
  }
  if (marks_.size() <= tensor.number) marks_.resize(tensor.number + 1);
  std::vector<Mark>& marks = marks_[tensor.number];
  if (marks.empty()) marks.resize(static_cast<std::size_t>(tensor.bytes / size_of(tensor.dtype)));
  const auto who = static_cast<std::uint16_t>(pe);
  for (Index element = first; element < first + count; ++element) {
    Mark& mark = marks[static_cast<std::size_t>(element)];
    if (how == Move::load)
      load(mark, who, tensor, element);
    else
      store(mark, who, how == Move::add, tensor, element);
  }
}

void Races::load(Mark& mark, std::uint16_t pe, const TensorInfo& tensor, Index element) {
  if (mark.written == phase_ && mark.writer != pe) race(tensor, element, "loads", "stored");
  mark.reader = mark.read == phase_ && mark.reader != pe ? kMany : pe;
  mark.read = phase_;
}

void Races::store(Mark& mark, std::uint16_t pe, bool adds, const TensorInfo& tensor,
                  Index element) {
  if (mark.read == phase_ && mark.reader != pe) race(tensor, element, "stores", "loaded");
  const bool others = mark.written == phase_ && mark.writer != pe;
  if (others && !(adds && mark.added)) race(tensor, element, "stores", "stored");
  mark.writer = others ? kMany : pe;
  mark.added = adds;
  mark.written = phase_;
}

}  // namespace sim
