"""Evaluators that are kept between the rounds of a job, because their workers have opened the
device."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from search.core.phases import phase
from search.evaluator.local import LocalEvaluator, Starts
from search.evaluator.stages import Bench

MOST = 2  # kernels; the workers of each hold a part of the device's memory


class KeptEvaluators:
    """The evaluators of the last few kernels; a context that closes them at its end.

    Opening a device takes a worker longer than a candidate. If times are not measured, no device is
    opened and no evaluator is kept. Outside of the context none is kept either.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, LocalEvaluator] = OrderedDict()
        self._keeps = False

    def __enter__(self) -> KeptEvaluators:
        self._keeps = True
        return self

    def __exit__(self, *_: object) -> None:
        self._keeps = False
        kept, self._kept = list(self._kept.values()), OrderedDict()
        with phase("close workers"), ThreadPoolExecutor(MOST) as pool:
            list(pool.map(lambda each: each.close(), kept))

    @contextmanager
    def opened(
        self, benches: Sequence[Bench], workers: int | None, starts: Starts | None
    ) -> Iterator[LocalEvaluator]:
        """A kept or new evaluator for some benches, for exclusive use. It is not kept if the search
        fails."""
        key = pickle.dumps((tuple(benches), workers))
        found = self._kept.pop(key, None)
        if found is None:
            with phase("close workers"):
                while len(self._kept) >= MOST:
                    self._kept.popitem(last=False)[1].close()
            found = LocalEvaluator(benches, workers, starts)
        try:
            yield found
        except BaseException:
            found.close()
            raise
        if self._keeps and found.measures:
            self._kept[key] = found
        else:
            found.close()
