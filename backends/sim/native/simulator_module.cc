// The Python module `_simulator`.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "backends/sim/native/error.h"
#include "backends/sim/native/event_rate.h"
#include "backends/sim/native/host.h"
#include "backends/sim/native/machine_reader.h"
#include "backends/sim/native/runner.h"
#include "backends/sim/native/simulation.h"
#include "backends/sim/native/value.h"

namespace py = pybind11;

namespace sim {
namespace {

using PyLaunch = std::tuple<std::string, std::vector<std::size_t>, std::vector<Index>>;

Fields fields_of(const py::dict& table) {
  Fields fields;
  for (const auto& [key, value] : table) {
    Field& field = fields[py::str(key).cast<std::string>()];
    field.shown = py::repr(value).cast<std::string>();
    const bool number = py::isinstance<py::float_>(value) || py::isinstance<py::int_>(value);
    if (py::isinstance<py::dict>(value)) {
      field.table = fields_of(py::reinterpret_borrow<py::dict>(value));
    } else if (number && !py::isinstance<py::bool_>(value)) {
      field.number = value.cast<double>();
    }
  }
  return fields;
}

Dtype dtype_named(const std::string& name, const std::string& tensor) {
  for (int i = 0; i < kDtypes; ++i)
    if (name == kNames[i]) return static_cast<Dtype>(i);
  throw SpecError(text("tensor '", tensor, "' has dtype '", name,
                       "'; it must be one of f32 f16 bf16 i32 i64 b8"));
}

TensorInfo tensor_of(const py::array& array, const std::string& name, const std::string& dtype) {
  TensorInfo tensor;
  tensor.name = name;
  tensor.dtype = dtype_named(dtype, name);
  if (!(array.flags() & py::array::c_style))
    throw SpecError(text("tensor '", name, "' is not C-contiguous"));
  if (!array.writeable()) throw SpecError(text("tensor '", name, "' is read-only"));
  if (array.itemsize() != size_of(tensor.dtype))
    throw SpecError(text("tensor '", name, "' has elements of ", array.itemsize(), " bytes; ",
                         dtype, " has ", size_of(tensor.dtype)));
  if (array.ndim() > device::kMaxRank)
    throw SpecError(text("tensor '", name, "' has rank ", array.ndim(), "; at most ",
                         device::kMaxRank));
  tensor.rank = static_cast<int>(array.ndim());
  Index stride = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    tensor.extent[d] = array.shape(d);
    tensor.stride[d] = stride;
    stride *= array.shape(d);
  }
  tensor.bytes = array.nbytes();
  tensor.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  return tensor;
}

py::dict engine_dict(Time busy, Time stall, Time most_busy, Time most_stall,
                     std::int64_t commands) {
  py::dict out;
  out["busy"] = busy;
  out["stall"] = stall;
  out["max_busy"] = most_busy;
  out["max_stall"] = most_stall;
  out["commands"] = commands;
  return out;
}

py::dict engines_of(const std::vector<Counters>& elements) {
  py::dict engines;
  for (int unit = 0; unit < kUnits; ++unit) {
    EngineCounters sum, most;
    for (const Counters& element : elements) {
      const EngineCounters& own = element.engine[static_cast<std::size_t>(unit)];
      sum.busy += own.busy;
      sum.stall += own.stall;
      sum.commands += own.commands;
      most.busy = std::max(most.busy, own.busy);
      most.stall = std::max(most.stall, own.stall);
    }
    engines[name_of(static_cast<Unit>(unit))] =
        engine_dict(sum.busy, sum.stall, most.busy, most.stall, sum.commands);
  }
  Time busy = 0, stall = 0, most_busy = 0, most_stall = 0;
  std::int64_t commands = 0;
  for (const Counters& element : elements) {
    busy += element.issue_busy;
    stall += element.issue_stall;
    most_busy = std::max(most_busy, element.issue_busy);
    most_stall = std::max(most_stall, element.issue_stall);
    for (const EngineCounters& engine : element.engine) commands += engine.commands;
  }
  engines["control"] = engine_dict(busy, stall, most_busy, most_stall, commands);
  return engines;
}

py::list elements_of(const std::vector<Counters>& elements) {
  py::list out;
  for (const Counters& element : elements) out.append(engines_of({element}));
  return out;
}

py::dict dict_of(const Result& result) {
  py::dict bytes;
  bytes["dram_read"] = result.dram_read_bytes;
  bytes["dram_write"] = result.dram_write_bytes;
  bytes["shared_read"] = result.shared_read_bytes;
  bytes["shared_write"] = result.shared_write_bytes;
  bytes["mesh"] = result.mesh_bytes;
  bytes["local"] = result.local_bytes;
  py::dict busy;
  busy["dram"] = result.dram_busy;
  busy["shared"] = result.shared_busy;
  busy["mesh_busiest_link"] = result.mesh_busiest;
  py::dict out;
  out["cycles"] = result.cycles;
  out["launch_cycles"] = result.launch_cycles;
  out["microseconds"] = result.microseconds;
  out["engines"] = engines_of(result.elements);
  out["elements"] = elements_of(result.elements);
  out["bytes"] = bytes;
  out["memory_busy"] = busy;
  out["events"] = result.events;
  return out;
}

py::dict run(const py::dict& machine, int socket,
             const std::vector<PyLaunch>& launches, const std::vector<py::array>& tensors,
             const std::vector<std::string>& names, const std::vector<std::string>& dtypes,
             const std::vector<std::string>& inputs, bool functional, bool check, Time max_cycles, std::int64_t max_events,
             const std::optional<std::string>& trace) {
  const Spec spec = read_machine(fields_of(machine));
  if (names.size() != tensors.size() || dtypes.size() != tensors.size())
    throw SpecError(text(tensors.size(), " tensors have ", names.size(), " names and ",
                         dtypes.size(), " dtypes"));
  std::vector<TensorInfo> infos;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    infos.push_back(tensor_of(tensors[i], names[i], dtypes[i]));
  for (TensorInfo& info : infos)
    info.input = std::find(inputs.begin(), inputs.end(), info.name) != inputs.end();
  std::vector<LaunchCall> calls;
  for (const auto& [kernel, arguments, sizes] : launches)
    calls.push_back({kernel, arguments, sizes});
  Result result;
  {
    py::gil_scoped_release released;
    Runner runner(socket);
    result = simulate(spec, {functional, check, max_cycles, max_events}, runner, calls,
                      std::move(infos), trace.value_or(""));
  }
  return dict_of(result);
}

}  // namespace
}  // namespace sim

PYBIND11_MODULE(_simulator, module) {
  module.doc() = "A simulator of a grid of processing elements: values and cycles.";
  py::register_exception<sim::SimulationError>(module, "SimulationError", PyExc_RuntimeError);
  py::register_exception<sim::SpecError>(module, "SpecError", PyExc_ValueError);
  py::register_exception<sim::KernelEnded>(module, "KernelEnded", PyExc_RuntimeError);
  module.def("simulate", &sim::run, py::arg("machine"), py::arg("socket"), py::arg("launches"),
             py::arg("tensors"), py::kw_only(), py::arg("names"), py::arg("dtypes"),
             py::arg("inputs") = std::vector<std::string>{}, py::arg("functional") = true, py::arg("check") = true, py::arg("max_cycles") = 0,
             py::arg("max_events") = 0, py::arg("trace") = py::none(),
             "Runs the launches (kernel name, tensors by number, sizes) of a kernel library, which the\n"
             "process at the other end of the socket loads and runs (`serve_kernel`), on a\n"
             "machine (local_bytes and the [sim] table of a target). The arrays are changed in\n"
             "place, but for those that `inputs` names. Gives cycles, microseconds, counters by engine and bytes by space. Raises\n"
             "SimulationError for what the machine refuses, ValueError for a wrong description,\n"
             "KernelEnded where that process ends.");
  module.def("serve_kernel", &sim::serve_kernel, py::arg("socket"), py::arg("library"),
             "Loads and runs a kernel's library for `simulate` at the other end of a socket.");
  module.def("event_rate", &sim::event_rate, py::arg("events"),
             py::call_guard<py::gil_scoped_release>(),
             "Events a second of the event core, over at least this many events.");
}
