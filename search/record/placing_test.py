"""A record is placed atomically: if a step fails, and wherever the process is killed."""

import os
import signal
import subprocess
import sys

import pytest

from search.record import placing
from search.record.placing import place, recover

OLD = {"kernel.cc": "old", "record.toml": "old", "variant.kir": "old"}
NEW = {"kernel.cc": "new", "record.toml": "new"}
# Places a record, and is killed before a given step, if there are that many.
KILLED = """
import os, signal, sys
from pathlib import Path
from search.record import placing

left = int(sys.argv[2])

def dying(step):
    def run(*words, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*words, **more)
    return run

for owner, name in (
    (placing.os, "rename"), (placing.os, "replace"), (placing.tempfile, "mkdtemp"),
    (placing.shutil, "rmtree"), (Path, "write_text"), (Path, "mkdir"),
):
    setattr(owner, name, dying(getattr(owner, name)))
placing.place(Path(sys.argv[1]), {"kernel.cc": "new", "record.toml": "new"}, {"spec.kir": "new"})
"""


def there(folder):
    """All files below the folder of a kernel, by path."""
    return {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*") if f.is_file()}


BEFORE = {f"chip/{name}": text for name, text in OLD.items()} | {"spec.kir": "old"}
AFTER = {f"chip/{name}": text for name, text in NEW.items()} | {"spec.kir": "new"}


def test_a_folder_is_made_and_replaced(tmp_path):
    kernel = tmp_path / "scale"
    place(kernel / "chip", OLD, {"spec.kir": "old"})
    assert there(kernel) == BEFORE
    place(kernel / "chip", NEW, {"spec.kir": "new"})
    assert there(kernel) == AFTER


@pytest.mark.parametrize("first", [True, False])
def test_a_kill_before_any_step_leaves_the_old_or_the_new(tmp_path, first):
    ended, steps = False, 0
    while not ended:
        kernel = tmp_path / str(steps)
        if not first:
            place(kernel / "chip", OLD, {"spec.kir": "old"})
        before = there(kernel)
        words = (sys.executable, "-c", KILLED, str(kernel / "chip"), str(steps))
        code = subprocess.run(words, check=False).returncode
        ended = code == 0
        assert ended or code == -signal.SIGKILL
        recover(kernel / "chip")
        assert there(kernel) in ((AFTER,) if ended else (before, AFTER))
        assert not list(kernel.glob(".*"))
        place(kernel / "chip", NEW, {"spec.kir": "new"})
        assert there(kernel) == AFTER
        steps += 1
    assert steps > 10


@pytest.mark.parametrize("number", range(4))
def test_a_step_that_fails_changes_nothing(tmp_path, monkeypatch, number):
    kernel = tmp_path / "scale"
    place(kernel / "chip", OLD, {"spec.kir": "old"})
    rename, calls = os.rename, []

    def failing(source, target):
        calls.append(source)
        if len(calls) == number + 1:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(placing.os, "rename", failing)
    if number == 3:  # the last rename only cleans up, and its leftovers are removed
        with pytest.raises(OSError, match="No space left"):
            place(kernel / "chip", NEW, {"spec.kir": "new"})
        monkeypatch.undo()
        recover(kernel / "chip")
        assert there(kernel) == AFTER
        return
    with pytest.raises(OSError, match="No space left"):
        place(kernel / "chip", NEW, {"spec.kir": "new"})
    assert there(kernel) == BEFORE


def test_a_file_beside_that_cannot_be_replaced_brings_the_old_folder_back(tmp_path, monkeypatch):
    kernel = tmp_path / "scale"
    place(kernel / "chip", OLD, {"spec.kir": "old"})

    def failing(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(placing.os, "replace", failing)
    with pytest.raises(OSError, match="No space left"):
        place(kernel / "chip", NEW, {"spec.kir": "new"})
    assert there(kernel) == BEFORE and not list(kernel.glob(".*"))


def test_two_that_place_at_once_take_turns(tmp_path):
    folder = tmp_path / "scale" / "chip"
    words = (sys.executable, "-c", KILLED, str(folder), "999")
    both = [subprocess.Popen(words) for _ in range(4)]
    assert [each.wait() for each in both] == [0] * 4
    assert there(tmp_path / "scale") == AFTER
