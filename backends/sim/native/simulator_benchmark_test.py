"""The speed of the simulator on one core."""

import time

import numpy as np

from backends.sim.native.kernel_fixture import machine, run
from backends.sim.native.load import load

_SOFTMAX = """
KERNEL(k) {
  const Index rows = args.size(0);
  auto a = pe.buffer("a", Dtype::f32, {{M, 32}, {N, 256}}, 3);
  auto r = pe.buffer("r", Dtype::f32, {{M, 32}}, 2);
  const Box box{{M, 32}, {N, 256}};
  for (Index i = pe.id(); i < rows / 32; i += pe.count()) {
    Tile t = a.next(), s = r.next();
    co_await pe.load(t, args.tensor(0), {{i * 32, M, 32}, {0, N, 256}});
    co_await pe.reduce(Reduction::max, s, t, box, false);
    co_await pe.map(Op::sub, t, {t, s}, box);
    co_await pe.map(Op::exp, t, {t}, box);
    co_await pe.reduce(Reduction::sum, s, t, box, false);
    co_await pe.map(Op::recip, s, {s}, {{M, 32}});
    co_await pe.map(Op::mul, t, {t, s}, box);
    co_await pe.store(args.tensor(1), {{i * 32, M, 32}, {0, N, 256}}, t);
  }
}
"""


def test_event_core(benchmark) -> None:
    rates = []
    benchmark.pedantic(
        lambda: rates.append(load().event_rate(20_000_000)), rounds=5, warmup_rounds=1
    )
    benchmark.extra_info["events_per_second"] = max(rates)


def _softmax(functional: bool) -> float:
    x = np.ones((32 * 1024, 256), np.float32)
    tensors = {"x": x, "y": np.zeros_like(x)}
    start = time.perf_counter()
    result = run(_SOFTMAX, tensors, [len(x)], machine=machine("npu"), functional=functional)
    return result["events"] / (time.perf_counter() - start)


def test_events_of_a_kernel_with_values(benchmark) -> None:
    _softmax(True)  # compiles
    benchmark.extra_info["events_per_second"] = benchmark(_softmax, True)


def test_events_of_a_kernel_without_values(benchmark) -> None:
    _softmax(False)
    benchmark.extra_info["events_per_second"] = benchmark(_softmax, False)
