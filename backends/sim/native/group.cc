#include "backends/sim/native/group.h"

#include "backends/sim/native/engine.h"
#include "backends/sim/native/error.h"

namespace sim {
namespace {

bool same_region(const Transfer& a, const Transfer& b) {
  if (a.tensor != b.tensor) return false;
  for (int d = 0; d < a.tensor->rank; ++d) {
    const Dimension& p = a.dimension[d];
    const Dimension& q = b.dimension[d];
    if (p.start != q.start || p.step != q.step || p.extent != q.extent) return false;
    if (p.indirect != q.indirect) return false;
  }
  return true;
}

}  // namespace

Meeting& GroupTable::arrive(Engine& engine, const Command& command, Index element) {
  Group& group = groups_[command.group.id];
  if (group.size == 0) group.size = command.group.size;
  if (group.size != command.group.size)
    fail("joins group ", command.group.id, " with size ", command.group.size,
         "; others gave size ", group.size);
  const std::uint64_t call = group.calls[element]++;
  Meeting& meeting = group.meetings[call];
  meeting.size = group.size;
  if (meeting.complete() || call < group.over)
    fail("is one more than the ", group.size, " members of group ", command.group.id);
  if (!meeting.members.empty()) {
    const Engine& first = *meeting.members.front();
    if (!same_region(first.head().transfer, command.transfer))
      fail("loads another region than PE ", first.element_id(), " of group ", command.group.id);
  }
  meeting.members.push_back(&engine);
  return meeting;
}

void GroupTable::dissolve(const Command& command, Index element) {
  Group& group = groups_[command.group.id];
  group.over = group.calls[element];
  group.meetings.erase(group.over - 1);
}

const Meeting* GroupTable::find(const Command& command, Index element) const {
  const auto group = groups_.find(command.group.id);
  if (group == groups_.end()) return nullptr;
  const auto calls = group->second.calls.find(element);
  if (calls == group->second.calls.end()) return nullptr;
  const auto meeting = group->second.meetings.find(calls->second - 1);
  return meeting == group->second.meetings.end() ? nullptr : &meeting->second;
}

}  // namespace sim
