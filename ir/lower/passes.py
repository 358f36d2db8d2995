"""Applies decisions on loops and loads of a launch that pass over the same tiles several times.

serpentine  before: for k: s += x;   for k: y = x / s
            after:  for k: s += x;   for k from the last to the first: y = x / s
cache       before: all loads of `x` have one hint;   after: those of the last pass have another one
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ir.errors import KernelError
from ir.nest.effects import times_loaded
from ir.nest.nest import Launch, Load, Loop, Scan, Statement
from ir.schedule import Decision, Schedule


def in_passes(launch: Launch, schedule: Schedule) -> Launch:
    """Reverses every second loop over a `serpentine` index, and sets the cache hints of last
    passes.

    Raises KernelError if such a loop must run in order.
    """
    serpentine = {d.subject.removesuffix(".outer"): d for d in schedule.of("serpentine")}
    last = {d.subject: str(d.option("last")) for d in schedule.of("cache") if d.option("last")}
    if not serpentine and not last:
        return launch
    left = times_loaded(launch)
    made = _Passes(serpentine, {t: hint for t, hint in last.items() if left[t] > 1}, left)
    return replace(launch, once=made.block(launch.once), body=made.block(launch.body))


class _Passes:
    """Rewrites the statements of one launch in order."""

    def __init__(self, serpentine: dict[str, Decision], last: dict[str, str], left: Counter[str]):
        self.serpentine, self.last, self.left = serpentine, last, left
        self.loops: Counter[str] = Counter()  # of each index, so far

    def block(self, block: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The statements of a block."""
        return tuple(self._made(block))

    def _made(self, block: tuple[Statement, ...]) -> Iterator[Statement]:
        for s in block:
            if isinstance(s, Loop):
                yield self._loop(s)
                continue
            if isinstance(s, Load):
                self.left[s.tensor] -= 1
                if s.tensor in self.last and not self.left[s.tensor]:
                    s = replace(s, cache=self.last[s.tensor])
            yield s

    def _loop(self, loop: Loop) -> Loop:
        decision = self.serpentine.get(loop.index)
        self.loops[loop.index] += decision is not None
        back = decision is not None and self.loops[loop.index] % 2 == 0
        if back and any(isinstance(s, Scan) and s.along == loop.index for s in loop.body):
            raise KernelError(
                f"a loop over `{loop.index}` has a running reduction along it, so it runs in order",
                place=decision.place if decision else None,
                hint=f"drop {decision}",
            )
        return replace(loop, body=self.block(loop.body), backwards=loop.backwards or back)
