#include "backends/sim/native/trace.h"

#include <fstream>
#include <iomanip>
#include <set>

#include "backends/sim/native/error.h"

namespace sim {
namespace {

std::string quoted(const std::string& raw) {
  std::string out = "\"";
  for (const char c : raw) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

void Trace::add(const Command& command, Index element, std::string label, Time done) {
  const char* name = command.kind == Kind::map ? name_of(command.op) : name_of(command.kind);
  spans_.push_back({element, command.unit, name, std::move(label), command.started,
                    command.occupied, done});
}

void Trace::write(const std::string& path) const {
  std::ofstream out(path);
  out << std::setprecision(15);
  std::set<Index> elements;
  std::set<std::pair<Index, Unit>> engines;
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char* comma = "\n";
  for (const Span& span : spans_) {
    if (elements.insert(span.element).second) {
      out << comma << "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" << span.element
          << ",\"args\":{\"name\":\"PE " << span.element << "\"}}";
      comma = ",\n";
    }
    if (engines.insert({span.element, span.unit}).second)
      out << comma << "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" << span.element
          << ",\"tid\":" << static_cast<int>(span.unit) << ",\"args\":{\"name\":\""
          << name_of(span.unit) << "\"}}";
    out << comma << "{\"ph\":\"X\",\"pid\":" << span.element
        << ",\"tid\":" << static_cast<int>(span.unit)
        << ",\"name\":" << quoted(span.label.empty() ? span.name : span.name + (" " + span.label))
        << ",\"ts\":" << static_cast<double>(span.start) * microseconds_
        << ",\"dur\":" << static_cast<double>(span.occupied) * microseconds_
        << ",\"args\":{\"cycle\":" << span.start << ",\"cycles\":" << span.occupied
        << ",\"done\":" << span.done << "}}";
  }
  out << "\n]}\n";
  out.close();
  if (!out) fail("cannot write the trace to '", path, "'");
}

}  // namespace sim
