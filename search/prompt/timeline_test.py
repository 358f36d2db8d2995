"""A timeline describes one tile, and the commands after the last load."""

import json

from search.prompt.timeline import MOST, timeline


def trace(*spans, processors=("PE 0", "PE 1")):
    """spans: (processor, engine, name, start, duration, cycles until the result over those it took)."""
    events = [
        {"ph": "M", "name": "process_name", "pid": n, "args": {"name": name}}
        for n, name in enumerate(processors)
    ]
    engines = list(dict.fromkeys((p, e) for p, e, *_ in spans))
    for p, engine in engines:
        thread = engines.index((p, engine))
        args = {"name": engine}
        events.append({"ph": "M", "name": "thread_name", "pid": p, "tid": thread, "args": args})
    for p, engine, name, start, duration, late in spans:
        args = {"cycle": 0, "cycles": 10, "done": 10 * late}
        event = {"ph": "X", "pid": p, "tid": engines.index((p, engine)), "name": name}
        events.append(event | {"ts": start, "dur": duration, "args": args})
    return json.dumps({"traceEvents": events}).encode()


SPANS = (
    (0, "dma_in", "load x to x", 0.0, 0.5, 2),
    (0, "dma_out", "store y to y", 1.0, 0.5, 1),
    (1, "dma_in", "load x to x", 0.0, 0.5, 2),
    (1, "vector", "add t", 1.0, 0.25, 1),
    (1, "vector", "add t", 1.25, 0.25, 1),
    (1, "dma_out", "store t to y", 1.5, 0.5, 1),
    (1, "dma_in", "load x to x", 2.0, 0.5, 2),
    (1, "special", "exp t", 3.0, 0.5, 1),
    (1, "dma_out", "store t to y", 3.5, 0.5, 1),
)


def test_the_processor_that_ends_last_is_told():
    assert timeline(trace(*SPANS)) == (
        "The first tile of PE 1, which ends last; from start to result in us, with the engine:",
        "    0.000-1.000 dma_in: load x to x",
        "    1.000-1.500 vector: add t x2",
        "    1.500-2.000 dma_out: store t to y",
        "The last load of PE 1 (`load x to x`) is there at 3.000 us of 4.000 us. The 1.000 us after it "
        "(25%) are the critical path that no load can hide:",
        "    3.000-3.500 special: exp t",
        "    3.500-4.000 dma_out: store t to y",
    )


def test_a_long_tile_is_cut():
    many = [(0, "vector", f"add t{n}", 1.0 + n, 1.0, 1) for n in range(MOST + 9)]
    last = 2.0 + len(many)
    spans = (SPANS[0], *many, (0, "dma_out", "store y to y", last, 1.0, 1))
    found = timeline(trace(*spans))
    assert found.count("    [... 11 more]") == 1 and "add t39" not in "".join(found[: MOST + 2])


def test_a_trace_without_loads_of_engines_tells_nothing():
    assert timeline(trace(SPANS[3])) == ()
    bars = {"traceEvents": [{"name": "f_0", "ph": "X", "ts": 0, "dur": 3, "pid": 0, "tid": 0}]}
    assert timeline(json.dumps(bars).encode()) == ()
