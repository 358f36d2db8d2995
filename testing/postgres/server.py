"""A PostgreSQL server: made in a folder of its own, started, killed and started again. For tests.

PostgreSQL refuses to run as root. There it runs as the first of `USERS` that the system has, or in a user
namespace where there is root alone, as in Bazel's sandbox.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USERS = ("postgres", "nobody")
NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
FOLDERS = "/usr/lib/postgresql"  # where Debian has the programs of each version
OWNER, PASSWORD = "speciate", "not:to be@shown/anywhere?"
QUOTED = "not%3Ato%20be%40shown%2Fanywhere%3F"  # the password in a URL
GUARD = 1800.0  # seconds: only what hangs waits so long
LOOK = 0.05  # seconds between looks


def programs() -> Path:
    """The folder of PostgreSQL's programs; AssertionError, with what to install, where there is none."""
    found = sorted(Path(FOLDERS).glob("*/bin/initdb"), key=lambda f: float(f.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    assert on_path, f"there is no PostgreSQL in {FOLDERS}: install it with `apt install postgresql`"
    return Path(on_path).resolve().parent


class Server:
    """A server with its data. options: of the program, as `fsync=off`."""

    def __init__(self, folder: Path, *options: str):
        self.folder = folder
        self.port = _free_port()
        self._programs = programs()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._user, self._prefix = _user(folder)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        made = self._run(
            "initdb",
            f"--pgdata={folder / 'data'}",
            "--auth=scram-sha-256",
            f"--username={OWNER}",
            f"--pwfile={secret}",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        )
        assert made.returncode == 0, made.stderr

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        settings = (
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            *self._options,
        )
        words = [word for setting in settings for word in ("-c", setting)]
        end = time.monotonic() + GUARD
        while True:
            self._process = self._popen("postgres", "-D", str(self.folder / "data"), *words)
            while self._process.poll() is None:
                if self._run(
                    "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)
                ).returncode:
                    assert time.monotonic() < end, self.log
                    time.sleep(LOOK)
                    continue
                return
            # Processes of one that was killed take a moment to end.
            assert time.monotonic() < end and "shared memory" in self.log, self.log
            time.sleep(LOOK)

    def kill(self) -> None:
        """Kills the server; its processes end, whatever they are at."""
        self._end(signal.SIGKILL)

    def stop(self, number: signal.Signals = signal.SIGQUIT) -> None:
        """Ends the server: at once with SIGQUIT, in order and with all connections with SIGINT."""
        self._end(number)

    def database(self) -> str:
        """The URL of a new database."""
        self._databases += 1
        name = f"store{self._databases}"
        made = self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", OWNER, name)
        assert made.returncode == 0, made.stderr
        return f"postgresql://{OWNER}:{QUOTED}@127.0.0.1:{self.port}/{name}"

    @property
    def log(self) -> str:
        """What the server has said."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None, "it was started"
        self._process.send_signal(number)
        self._process.wait(GUARD)

    def _run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._prefix, str(self._programs / program), *words],
            capture_output=True,
            text=True,
            timeout=GUARD,
            cwd=self.folder,
            env=_environment(),
            user=self._user,
            group=self._user and pwd.getpwnam(self._user).pw_gid,
            extra_groups=None if self._user is None else [],
        )

    def _popen(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [*self._prefix, str(self._programs / program), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_environment(),
                user=self._user,
                group=self._user and pwd.getpwnam(self._user).pw_gid,
                extra_groups=None if self._user is None else [],
            )


@contextmanager
def running(*options: str) -> Iterator[Server]:
    """A server that runs, in a folder that is removed in the end."""
    # As root not in a folder of root's, which others cannot enter.
    place = "/tmp" if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="speciate-postgres-", dir=place) as folder:
        server = Server(Path(folder), *options)
        server.start()
        try:
            yield server
        finally:
            if server._process is not None and server._process.poll() is None:
                server.stop()


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "PGPASSWORD": PASSWORD}


def _user(folder: Path) -> tuple[str | None, tuple[str, ...]]:
    """Who the server runs as, None for the user of this process, and what its programs are started by.
    The folder becomes that user's."""
    if os.getuid() != 0:
        return None, ()
    there = {entry.pw_name for entry in pwd.getpwall()}
    found = next((name for name in USERS if name in there), None)
    try:
        if found is not None:
            shutil.chown(folder, found)
            return found, ()
    except OSError:  # there is no other user in this namespace
        pass
    return None, NAMESPACE


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
