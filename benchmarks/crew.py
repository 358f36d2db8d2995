"""A crew: the processes of a run, each with a time limit.

One of them may have the device exclusively while the others are stopped.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from benchmarks.device_lock import ALONE, GRANTED

TICK = 0.1  # Seconds between polls of a process.
DRAIN = 0.3  # Seconds in which the device finishes the work of stopped processes.


@dataclass(slots=True)
class Member:
    """A process of the crew."""

    process: subprocess.Popen[bytes]
    ask: int  # Descriptor that it writes to.
    answer: int  # Descriptor that it reads from.
    stopped: bool = False
    seconds: float = 0.0  # Time that it was not stopped.


class Crew:
    """Processes that threads start. Each thread waits for its own."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.alone: Member | None = None
        self.changed = threading.Condition()
        self.ended = False

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], limit: float, log: int
    ) -> str:
        """Runs a command. Returns why it failed; empty if it did not.

        It passes the command `--ask` and `--answer`, which are descriptors.

        limit: seconds that it may take while it is not stopped.
        log: the descriptor that it writes to.
        """
        member = self._started(command, environment, log)
        try:
            reason = self._watched(member, limit)
        finally:
            self._left(member)
        code = member.process.wait()
        if reason or code == 0:
            return reason
        return f"its process ended with {code}"

    def end(self) -> None:
        """Ends all processes. No further one starts."""
        with self.changed:
            self.ended = True
            for member in self.members:
                _killed(member)
            self.changed.notify_all()

    def _started(self, command: Sequence[str], environment: Mapping[str, str], log: int) -> Member:
        with self.changed:
            self.changed.wait_for(lambda: self.alone is None or self.ended)
            if self.ended:
                raise KeyboardInterrupt
            ask, theirs = os.pipe()
            mine, answer = os.pipe()
            process = subprocess.Popen(
                [*command, f"--ask={theirs}", f"--answer={mine}"],
                env=dict(environment),
                pass_fds=(theirs, mine),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            os.close(theirs)
            os.close(mine)
            member = Member(process, ask, answer)
            self.members.append(member)
            return member

    def _watched(self, member: Member, limit: float) -> str:
        before, open_ = time.monotonic(), True
        while member.process.poll() is None:
            if open_ and select.select([member.ask], [], [], TICK)[0]:
                word = os.read(member.ask, 1)
                open_ = bool(word)
                if word:
                    self._heard(member, word)
            elif not open_:
                time.sleep(TICK)
            now = time.monotonic()
            member.seconds += 0.0 if member.stopped else now - before
            before = now
            if member.seconds > limit:
                _killed(member)
                return f"it took longer than {limit:g} s"
        return ""

    def _heard(self, member: Member, word: bytes) -> None:
        with self.changed:
            if word == ALONE:
                self.alone = member
                for other in self.members:
                    if other is not member:
                        other.stopped = _signalled(other, signal.SIGSTOP)
            else:
                self._released(member)
            others = len(self.members) - 1
        if word == ALONE and others:
            time.sleep(DRAIN)
        with suppress(BrokenPipeError):  # It has ended.
            os.write(member.answer, GRANTED)

    def _released(self, member: Member) -> None:
        """Continues the others if they waited for this process. The caller holds the lock."""
        if self.alone is member:
            self.alone = None
            for other in self.members:
                if other.stopped:
                    _signalled(other, signal.SIGCONT)
                    other.stopped = False
            self.changed.notify_all()

    def _left(self, member: Member) -> None:
        _killed(member)  # Also ends the processes that it started.
        with self.changed:
            self._released(member)
            self.members.remove(member)
        os.close(member.ask)
        os.close(member.answer)


def _signalled(member: Member, number: int) -> bool:
    with suppress(ProcessLookupError):
        member.process.send_signal(number)
        return member.process.returncode is None
    return False


def _killed(member: Member) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(member.process.pid, signal.SIGKILL)
