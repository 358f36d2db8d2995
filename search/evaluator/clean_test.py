"""Clean processes: they do not know the secrets, and they end."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from backends.backend import BackendError
from backends.gpu.apart import apart, joined
from search.core.evaluation import Evaluation, Failure
from search.evaluator import worker
from search.evaluator.clean import Template, beside
from search.evaluator.local import LocalEvaluator
from search.evaluator.testing.acting import (
    HOURS,
    LIMITS,
    Apart,
    Tongue,
    acted,
    bench,
    outcomes,
    secret_of_a_test,
)

SECRET = secret_of_a_test()


@pytest.fixture(scope="module")
def evaluator():
    with LocalEvaluator([bench(Apart, secret=SECRET)], workers=1) as found:
        yield found


def test_an_edited_source_runs_where_no_secret_ever_was(evaluator):
    (found,) = outcomes(evaluator, "held")
    assert isinstance(found, Evaluation), found


def test_a_fork_of_the_judge_has_it(evaluator):
    """An emitted source runs in the judging process, which shows that the other test can fail."""
    (found,) = outcomes(evaluator, None)
    assert isinstance(found, Failure) and SECRET in found.reason


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("divide", ("wrong",)),
        ("segfault", ("crash",)),
        ("kill", ("machine",)),
        ("leave", ("crash",)),
        ("forge", ("crash",)),
        (f"connect {os.getpid()}", ("wrong",)),
        ("write", ("wrong",)),
        ("eat", ("memory", "machine")),
    ],
)
def test_a_hostile_source_fails_and_the_next_one_runs(evaluator, source, kinds):
    found, good = outcomes(evaluator, source, "fine")
    assert isinstance(found, Failure) and found.kind in kinds, found
    assert isinstance(good, Evaluation)


def test_what_takes_all_its_time_is_ended_with_what_it_started():
    mark = f"{HOURS}.{os.getpid()}7"
    with LocalEvaluator([bench(Apart, limits=replace(LIMITS, seconds=1.5))], workers=1) as hasty:
        (found,) = outcomes(hasty, f"wait {mark}")
    assert isinstance(found, Failure) and found.kind in ("timeout", "machine"), found
    while _running(mark):  # the clean process ends as soon as its line is closed
        time.sleep(0.05)


def _running(mark):
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [file] if mark in file.read_bytes().decode(errors="replace") else []
        except OSError:  # it has ended already
            continue
    return found


def test_a_template_that_was_killed_is_made_again(tmp_path, monkeypatch):
    from search.evaluator.stages import Stages

    stages = Stages.of(bench(Apart))
    monkeypatch.setattr(worker, "_templates", {})
    made = worker._line(stages, tmp_path, None)
    (first,) = worker._templates.values()
    first._process.kill()
    first._process.wait()
    other = worker._line(stages, tmp_path, None)
    (second,) = worker._templates.values()
    assert second.pid != first.pid
    for line in (made, other):
        os.close(line)
    second.close()


def test_a_template_is_told_of_no_secret():
    """A new program has in memory only what it is sent."""
    import pickle

    given = bench(Apart, secret=SECRET)
    assert SECRET.encode() in pickle.dumps(given)
    assert SECRET.encode() not in pickle.dumps((given.machine, given.open))
    made = Template(given.machine, given.open)
    assert SECRET.encode() not in Path(f"/proc/{made.pid}/environ").read_bytes()
    assert SECRET.encode() not in Path(f"/proc/{made.pid}/cmdline").read_bytes()
    made.close()


def held_by(folder):
    """The secrets in the memory of the process that works for this one."""
    return apart(acted, "held", seconds=1800.0, stage="check", folder=folder)


def test_a_tool_has_a_clean_process_too_as_long_as_it_wants(tmp_path):
    assert held_by(tmp_path) == [SECRET]
    with beside(bench(Apart).machine, Apart):
        assert held_by(tmp_path) == []
        with pytest.raises(BackendError):  # raised in the sandboxed clean process
            apart(acted, "leave", seconds=1800.0, stage="check", folder=tmp_path)
    assert not joined() and held_by(tmp_path) == [SECRET]


def test_a_backend_whose_kernels_have_processes_of_their_own_needs_none():
    with beside(bench(Apart).machine, Tongue):
        assert not joined()


def test_its_end_comes_with_a_fault_of_the_tool_too():
    with pytest.raises(ZeroDivisionError), beside(bench(Apart).machine, Apart):
        assert joined() and 1 // 0
    assert not joined()
