#include "backends/sim/native/deadlock.h"

#include <algorithm>
#include <vector>

#include "backends/sim/native/element.h"
#include "backends/sim/native/error.h"

namespace sim {
namespace {

constexpr std::size_t kLines = 24;  // a report is read by people

std::string members(const Meeting& meeting) {
  std::string list;
  for (const Engine* engine : meeting.members)
    list += (list.empty() ? "" : ", ") + std::to_string(engine->element_id());
  return list;
}

std::string partner(const Chip& chip, const Engine& engine) {
  const Command& head = engine.head();
  if (head.kind == Kind::send) return text("PE ", head.peer, " to receive");
  if (head.kind == Kind::receive) return text("PE ", head.peer, " to send");
  const Meeting* meeting = chip.groups.find(head, engine.element_id());
  if (meeting == nullptr) return "its group";
  return text("group ", head.group.id, ": ", meeting->members.size(), " of ", meeting->size,
              " members have come (PE ", members(*meeting), ")");
}

std::string slot(Element& element, const Engine& engine) {
  const std::uint32_t number = engine.blocking_slot();
  const BufferInfo& buffer = element.memory().buffer_of(number);
  return text("slot ", number - buffer.first_slot, " of '", buffer.name, "': ",
              element.scoreboard().pending_writes(number), " writes and ",
              element.scoreboard().pending_reads(number), " reads are not complete");
}

std::string program(const Chip& chip, const Element& element) {
  switch (element.wait()) {
    case Element::Wait::queue:
      return text("room in the queue of ", name_of(element.waits_for_unit()));
    case Element::Wait::number: return "a number";
    case Element::Wait::barrier:
      return text("the barrier: ", chip.barrier.arrived(), " of ", chip.barrier.expected(),
                  " have come");
    default: return "something that is not simulated; a command or number needs co_await";
  }
}

void describe(const Chip& chip, Element& element, std::vector<std::string>& lines) {
  const Index id = element.id();
  if (element.wait() != Element::Wait::ended)
    lines.push_back(text("PE ", id, " program, since cycle ", element.core_time(),
                         ", waits for ", program(chip, element)));
  for (int unit = 0; unit < kUnits; ++unit) {
    const Engine& engine = element.engine(static_cast<Unit>(unit));
    if (!engine.has_head()) continue;
    const bool on_slot = engine.wait() == Engine::Wait::slot;
    lines.push_back(text("PE ", id, " ", name_of(engine.unit()), ": ",
                         element.describe(engine.head()), ", issued at cycle ",
                         engine.head().issued, ", waits for ",
                         on_slot ? slot(element, engine) : partner(chip, engine)));
  }
}

}  // namespace

void check_ended(const Chip& chip) {
  const bool ended = std::all_of(chip.elements.begin(), chip.elements.end(), [](const auto& e) {
    return e->wait() == Element::Wait::ended && e->outstanding() == 0;
  });
  if (ended) return;
  std::vector<std::string> lines;
  for (const auto& element : chip.elements) describe(chip, *element, lines);
  std::string report = text("deadlock at cycle ", chip.events.now(), ":");
  for (std::size_t i = 0; i < std::min(lines.size(), kLines); ++i) report += "\n  " + lines[i];
  if (lines.size() > kLines)
    report += text("\n  and ", lines.size() - kLines, " more");
  throw SimulationError(report);
}

}  // namespace sim
