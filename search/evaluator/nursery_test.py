"""Workers of a nursery evaluate like others, share their setup, and leave nothing running."""

import os
import signal
import time
from pathlib import Path

import pytest

from backends.registry import backend
from backends.served import Served
from ir.errors import KernelError
from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.nursery import KEPT, Nursery
from search.evaluator.testing.acting import CHIP, Mute, bench, outcomes

GUARD = 600.0  # seconds; only a hang takes so long


def evaluated(nursery, workers=1, **more):
    with LocalEvaluator([bench(**more)], workers, nursery) as evaluator:
        return outcomes(evaluator, "good", "off"), dict(evaluator.contexts)


def test_they_evaluate_as_workers_that_are_programs_of_their_own():
    with Nursery() as nursery:
        (good, bad), contexts = evaluated(nursery, 2)
    assert isinstance(good, Evaluation) and isinstance(bad, Failure) and bad.kind == "wrong"
    with LocalEvaluator([bench()], 1) as evaluator:
        assert contexts == dict(evaluator.contexts)


def test_a_stem_is_used_again_and_few_are_kept():
    with Nursery() as nursery:
        evaluated(nursery)
        (first,) = nursery._stems.values()
        evaluated(nursery)
        assert list(nursery._stems.values()) == [first]
        for n in range(KEPT):
            evaluated(nursery, secret=str(n))
        assert len(nursery._stems) == KEPT and first not in nursery._stems.values()


def test_what_is_expected_is_set_up_while_workers_evaluate():
    with Nursery() as nursery:
        nursery.warm([Served(backend("null"), CHIP)])
        nursery.expect([bench(secret="next")])
        evaluated(nursery)
        now, following = nursery._stems.values()
        evaluated(nursery, secret="next")
        assert list(nursery._stems.values()) == [now, following]


def test_what_cannot_be_set_up_is_told():
    with Nursery() as nursery, pytest.raises(KernelError, match="cannot be evaluated here"):
        evaluated(nursery, backend=Mute)


def test_a_template_that_was_killed_is_started_again():
    with Nursery() as nursery:
        evaluated(nursery)
        os.kill(nursery._process.pid, signal.SIGKILL)
        nursery._process.wait()
        (good, _), _ = evaluated(nursery, secret="another")
        assert isinstance(good, Evaluation)


def test_a_worker_that_is_killed_is_replaced_and_all_end_with_the_nursery():
    with Nursery() as nursery:
        with LocalEvaluator([bench()], 1, nursery) as evaluator:
            evaluator._pool[0].process.kill()
            evaluator._pool[0].process.wait(GUARD)
            (good,) = outcomes(evaluator, "good")
            assert isinstance(good, Evaluation)
            homes = [w.home for w in evaluator._pool]
        template, folder = nursery._process.pid, nursery._folder.name
    assert not any(home.exists() for home in homes) and not Path(folder).exists()
    wait_for(lambda: not Path(f"/proc/{template}").exists())


def wait_for(holds):
    end = time.monotonic() + GUARD
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
