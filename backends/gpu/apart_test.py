"""Work in a clean process: its results, its faults, its files, and what it is never told."""

import os
import select
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu import apart as module
from backends.gpu.apart import apart, joined
from backends.gpu.child import ChildEnded
from backends.gpu.testing.clean import clean_process, served

HOURS = 7200.0  # seconds: longer than a test may take
GUARD = 1800.0  # seconds: only what hangs waits so long


@pytest.fixture
def clean(tmp_path):
    """A process that serves this one; its number."""
    with clean_process(tmp_path / "clean") as pid:
        yield pid


def asked(function, *args, folder, **more):
    return apart(function, *args, **{"seconds": GUARD, "stage": "check", "folder": folder, **more})


def doubled(place, array):
    return {"twice": 2 * array, "parent": os.getppid(), "place": str(place)}


def test_a_value_comes_back_from_a_fork_of_the_clean_process(clean, tmp_path):
    array = np.arange(1 << 18, dtype=np.float32)
    assert joined()
    for _ in range(2):
        found = asked(doubled, array, folder=tmp_path)
        np.testing.assert_array_equal(found["twice"], 2 * array)
        assert found["parent"] == clean and found["place"].startswith(str(tmp_path / "clean"))
    assert not list((tmp_path / "clean").iterdir())


def test_without_one_it_is_a_fork_of_this_process(tmp_path):
    assert not joined()
    found = asked(doubled, np.ones(3), folder=tmp_path)
    assert found["parent"] == os.getpid() and found["place"] == str(tmp_path)


def fails(place, how):
    if how == "raises":
        raise ValueError("no good")
    if how == "refuses":
        raise BackendError("build", "line 1")
    if how == "dies":
        os.abort()
    if how == "hangs":
        time.sleep(HOURS)
    if how == "prints":
        os.write(2, b"error: it went on\n")


@pytest.mark.parametrize(
    ("how", "said", "kind"),
    [
        ("raises", "ValueError: no good", None),
        ("refuses", "line 1", None),
        ("dies", "died of SIGABRT", "crash"),
        ("prints", "reported an error and went on", None),
    ],
)
def test_a_fault_is_that_of_the_work_and_the_next_one_is_done(clean, tmp_path, how, said, kind):
    with pytest.raises(BackendError, match=said) as seen:
        asked(fails, how, folder=tmp_path)
    assert isinstance(seen.value, ChildEnded) is (kind is not None)
    assert kind is None or seen.value.kind == kind
    assert asked(doubled, np.ones(1), folder=tmp_path)["parent"] == clean


def test_what_takes_too_long_is_ended(clean, tmp_path):
    with pytest.raises(ChildEnded, match="still at it after 1 s"):
        asked(fails, "hangs", folder=tmp_path, seconds=1.0)
    assert asked(doubled, np.ones(1), folder=tmp_path)["parent"] == clean


def kills(place):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(HOURS)


def test_a_clean_process_that_is_killed_is_the_machines_fault(clean, tmp_path):
    with pytest.raises(ChildEnded, match="the clean process that had it ended") as seen:
        asked(kills, folder=tmp_path)
    assert seen.value.kind == "machine"
    with pytest.raises(ChildEnded):
        asked(doubled, np.ones(1), folder=tmp_path)


def writes(place):
    (place / "kept" / "deep").mkdir(parents=True)
    (place / "kept" / "deep" / "a").write_bytes(b"1")
    (place / "kept" / "link").symlink_to("/etc/hostname")
    (place / "left").write_text("2")
    os.mkfifo(place / "kept" / "pipe")


def test_files_of_folders_that_are_kept_come_back(clean, tmp_path):
    own = tmp_path / "own"
    asked(writes, folder=own, keep=("kept", "missing"))
    assert [p for p in own.rglob("*") if p.is_file()] == [own / "kept" / "deep" / "a"]


@pytest.mark.parametrize("name", ["/tmp/x", "../x", "a/../../x"])
def test_a_file_leads_nowhere_else(tmp_path, name):
    with pytest.raises(ChildEnded, match="it sent a file"):
        module._write(tmp_path, name, b"")


def test_too_many_bytes_of_files_are_refused(clean, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 0)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").write_bytes(b"1")
    with pytest.raises(BackendError, match="its files are more than"):
        module._files(tmp_path, ("kept",))


def waits(place, pipe):
    with Path(pipe).open("wb"):
        time.sleep(HOURS)


def test_work_that_nobody_waits_for_any_more_is_ended(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pid, line = served(tmp_path)
    word = module.pickle.dumps((waits, (str(pipe),), GUARD, "check", ()))
    module._send(line, word)
    read = os.open(pipe, os.O_RDONLY)  # which waits until the work has it open
    os.close(line)
    assert select.select([read], [], [], GUARD)[0] and os.read(read, 1) == b""
    os.waitpid(pid, 0)
    os.close(read)


def test_a_forged_answer_calls_nothing(tmp_path):
    class Forged:
        def __reduce__(self):
            return os.system, ("true",)

    with pytest.raises(ChildEnded, match="it sent what is no result"):
        module._taken(module.pickle.dumps(("value", Forged(), {})), "check", tmp_path)
