"""A kernel's text shows the same facts as its nest."""

import pytest

from backends.backend import CountsSource
from backends.registry import backend, target
from backends.sim.static import static_figures
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.estimate.kernel_features import kernel_features
from ir.lower.lower import lower
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY

KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))
BY_HAND = """
#include "device.h"
// pe.add(nothing) in a comment, and "pe.add(" in a text
KERNEL(norm) {
  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::m, 1}, {axis::k, 64}}, 2);
  Buffer w_t = pe.buffer("w { pe.add(", Dtype::f32, {{axis::k, K}}, 1);
  Buffer s_t = pe.buffer("s", Dtype::f32, {{axis::m, 1}}, 1);
  co_await pe.load(w_t.next(), w_g, {Slice{0, axis::k, K}});
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    co_await pe.fill(s_t.next(), 0.0, box_m);
    for (Index k = 0; k < K; k += 64) {
      co_await pe.load(x_t.next(), x_g, {Slice{m, axis::m, 1}, Slice{k, axis::k, 64}});
      co_await pe.reduce(Reduction::sum, s_t.tile(), x_t.tile(), box_m_k, true);
    }
    for (Index k = 0; k < K; k += 64)
      co_await pe.load(x_t.next(), x_g, {Slice{m, axis::m, 1}, Slice{k, axis::k, 64}});
    co_await pe.map(Op::mul, x_t.tile(), {x_t.tile(), w_t.tile()}, box_m_k);
    co_await pe.barrier();
    co_await pe.add(y_g, {Slice{m, axis::m, 1}}, s_t.tile());
  }
}
"""


@pytest.mark.parametrize("first", [autoschedule, plain])
@pytest.mark.parametrize("name", KERNELS)
def test_an_emitted_text_shows_what_its_nest_says(name, first):
    machine = target("npu")
    found = parse_workload((LIBRARY / f"{name}.kir").read_text(encoding="utf-8"))
    schedule = first(found.spec, machine, found.tune)
    nest = lower(found.spec, schedule, machine, found.tune)
    said = kernel_features(nest, machine, found.tune)
    seen = backend("sim").static_figures(backend("sim").emit(nest, machine))
    for kind in ("collectives", "atomics", "barriers", "carried", "passes"):
        assert seen[kind] == said[kind], kind
    assert (seen["matrix_share"] > 0) == (said["matrix_share"] > 0)
    assert (seen["reused"] >= 0.5) == (said["reused"] >= 0.5)


def test_the_backend_counts_sources():
    assert isinstance(backend("sim"), CountsSource)


def test_a_text_by_hand_is_counted_by_what_it_does():
    found = static_figures(BY_HAND)
    assert found["passes"] == 2  # x is read in two loops
    assert found["carried"] == 1
    assert (found["collectives"], found["barriers"], found["atomics"]) == (1, 1, 1)
    assert found["matrix_share"] == 0
    assert found["ahead"] == pytest.approx(2 * 16 / (2 * 16 + 1), abs=0.01)  # x has two slots
    assert found["reused"] == 1.0  # w is loaded once for all tiles, x reduced and mapped


@pytest.mark.parametrize("text", ["", "KERNEL(", "KERNEL(x) {", "int main() { return 0; }", '"'])
def test_what_is_no_kernel_shows_nothing(text):
    assert static_figures(text) == {}
