"""A timeline in words: one tile of the processor that ends last, and the commands after its last
load.

It is read from a trace in Chrome's format by a backend: a process is a processor, a thread is an
engine, and an event's name begins with its command. `load` and `store` move tensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST = 40  # commands of a tile, and after the last load
_LOAD, _STORE = "load", "store"


@dataclass(frozen=True, slots=True)
class Span:
    """A command of one engine, in microseconds."""

    engine: str
    what: str
    start: float
    end: float  # when its result was available


def timeline(trace: bytes) -> tuple[str, ...]:
    """Lines about a trace; empty if it has no loads and stores of engines."""
    by_processor = _spans(json.loads(trace)["traceEvents"])
    if not by_processor:
        return ()
    last = max(by_processor, key=lambda name: max(s.end for s in by_processor[name]))
    spans = sorted(by_processor[last], key=lambda s: (s.start, s.end))
    loads = [s for s in spans if s.what.startswith(_LOAD)]
    stores = [s for s in spans if s.what.startswith(_STORE)]
    if not loads or not stores:
        return ()
    return (*_first_tile(last, spans, stores[0]), *_tail(last, spans, loads))


def _spans(events: Sequence[Mapping[str, Any]]) -> dict[str, list[Span]]:
    """The commands of each processor with named engines."""
    names = {
        (e["name"], e["pid"], e.get("tid")): e["args"]["name"] for e in events if e.get("ph") == "M"
    }
    found: dict[str, list[Span]] = {}
    for e in events:
        engine = names.get(("thread_name", e["pid"], e.get("tid")))
        processor = names.get(("process_name", e["pid"], None))
        if e.get("ph") != "X" or engine is None or processor is None:
            continue
        end = e["ts"] + e["dur"]
        args = e.get("args", {})
        if e["dur"] and {"cycle", "cycles", "done"} <= set(args) and args["cycles"]:
            end = e["ts"] + (args["done"] - args["cycle"]) * e["dur"] / args["cycles"]
        found.setdefault(processor, []).append(Span(engine, e["name"], e["ts"], end))
    return found


def _first_tile(processor: str, spans: Sequence[Span], store: Span) -> Iterator[str]:
    own = [s for s in spans if s.start <= store.start]
    yield (
        f"The first tile of {processor}, which ends last; from start to result in us, with the engine:"
    )
    yield from _told(own)


def _tail(processor: str, spans: Sequence[Span], loads: Sequence[Span]) -> Iterator[str]:
    last = max(loads, key=lambda s: s.end)
    end = max(s.end for s in spans)
    after = [s for s in spans if s.end > last.end]
    yield (
        f"The last load of {processor} (`{last.what}`) is there at {last.end:.3f} us of {end:.3f} us. "
        f"The {end - last.end:.3f} us after it ({(end - last.end) / end:.0%}) are the critical path "
        "that no load can hide:"
    )
    yield from _told(after)


def _told(spans: Sequence[Span]) -> Iterator[str]:
    """A line for each command; consecutive equal commands of an engine share a line."""
    # the first of a run, its length, and the end of the last
    lines: list[tuple[Span, int, float]] = []
    for s in spans:
        if lines and (lines[-1][0].engine, lines[-1][0].what) == (s.engine, s.what):
            first, count, end = lines[-1]
            lines[-1] = first, count + 1, max(end, s.end)
        else:
            lines.append((s, 1, s.end))
    for first, count, end in lines[:MOST]:
        times = f" x{count}" if count > 1 else ""
        yield f"    {first.start:.3f}-{end:.3f} {first.engine}: {first.what}{times}"
    if len(lines) > MOST:
        yield f"    [... {len(lines) - MOST} more]"
