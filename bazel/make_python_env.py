"""Makes, or finds again, the virtual environment that a lock file describes.

    python3 bazel/make_python_env.py requirements.lock

prints the interpreter to use. The environment lies under the user's cache
folder and is named after everything that decides what is in it, so that a
second checkout or a `bazel clean --expunge` finds it ready. The `python_env`
repository rule calls this program and reads --facts.

Runs before any package is installed: the standard library only.
"""

import argparse
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig

LAYOUT = "1"  # Raise when environments are laid out differently.
OLDEST_PYTHON = (3, 11)  # The first with -P; see write_launcher.


class EnvError(Exception):
    """The environment cannot be made; the text says what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class EnvironmentPaths:
    """What the build needs to know of an environment; all are paths."""

    python: str
    launcher: str
    include: str
    pybind11_include: str


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"python_env: {text}", file=sys.stderr, flush=True)


def requirements(lock_text: str) -> list[str]:
    """The requirements in a lock, sorted and without comments."""
    lines = (line.partition("#")[0].strip() for line in lock_text.splitlines())
    return sorted(line for line in lines if line)


def key_of(lock_text: str) -> str:
    """Sixteen hex digits for the environment of this lock and interpreter."""
    decisive = [
        LAYOUT,
        sys.version,
        os.path.realpath(sys.executable),
        sysconfig.get_platform(),
        "-".join(platform.libc_ver()),
        *requirements(lock_text),
    ]
    return hashlib.sha256("\n".join(decisive).encode()).hexdigest()[:16]


def cache_folder() -> pathlib.Path:
    """Where environments are kept on this machine."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "speciate" / "python_env"


def run(step: str, advice: str, *command: str) -> None:
    """Runs a command with its output on stderr.

    Raises:
      EnvError: the command failed.
    """
    if subprocess.run(command, stdout=sys.stderr.fileno(), check=False).returncode:
        raise EnvError(f"{step} failed; {advice}")


def write_launcher(env: pathlib.Path) -> None:
    """Adds bin/bazel-python, the interpreter as Bazel starts it.

    -P keeps the folder of the started program off sys.path. Bazel links to the
    checkout, so that folder would be the checkout's own, and would let in what
    a target does not declare.
    """
    launcher = env / "bin" / "bazel-python"
    launcher.write_text(f'#!/bin/sh\nexec {env}/bin/python3 -P "$@"\n')
    launcher.chmod(0o755)


def make(env: pathlib.Path, lock: pathlib.Path) -> None:
    """Makes the environment at `env`, replacing one that was left half done."""
    if env.exists():
        say("removing an unfinished environment")
        shutil.rmtree(env)
    run(
        "making a virtual environment",
        "on Debian and Ubuntu install python3-venv",
        sys.executable,
        "-m",
        "venv",
        str(env),
    )
    python = str(env / "bin" / "python3")
    say(f"installing {lock.name} into {env} (once for each lock; some minutes)")
    # With dependencies: a CUDA build of torch needs packages that the CPU build,
    # which the lock was made with, does not.
    run(
        f"installing {lock}",
        "pip's message above says why",
        python,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "-qq",
        "--progress-bar",
        "off",
        "--no-compile",
        "-r",
        str(lock),
    )
    run(
        f"checking {lock}",
        "its packages do not fit together; renew it",
        python,
        "-m",
        "pip",
        "check",
        "--disable-pip-version-check",
    )
    # Tests see the environment read-only: what is not compiled now, each of
    # them would compile again. Some packages ship files that do not compile.
    subprocess.run([python, "-m", "compileall", "-qq", "-j", "0", str(env / "lib")], check=False)
    write_launcher(env)
    say("ready")


def facts_of(env: pathlib.Path) -> EnvironmentPaths:
    """Asks the interpreter of a finished environment for its paths."""
    python = str(env / "bin" / "python3")
    question = (
        "import sysconfig, pybind11;"
        "print(sysconfig.get_path('include'));"
        "print(pybind11.get_include())"
    )
    answer = subprocess.run(
        [python, "-I", "-c", question], check=True, capture_output=True, text=True
    )
    include, pybind11_include = answer.stdout.splitlines()
    return EnvironmentPaths(
        python=python,
        launcher=str(env / "bin" / "bazel-python"),
        include=include,
        pybind11_include=pybind11_include,
    )


def ensure(lock: pathlib.Path, root: pathlib.Path) -> EnvironmentPaths:
    """The environment for `lock` below `root`, made now if it is not there.

    Two callers at once are safe: one makes it, the other waits.
    """
    if sys.version_info < OLDEST_PYTHON:
        raise EnvError(
            f"{sys.executable} is Python {platform.python_version()}, but 3.11 or newer "
            "is needed; name one in SPECIATE_PYTHON"
        )
    root.mkdir(parents=True, exist_ok=True)
    key = key_of(lock.read_text())
    env = root / key
    done = env / "complete.json"
    with open(root / f"{key}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not done.exists():
            make(env, lock)
            done.write_text(json.dumps(dataclasses.asdict(facts_of(env))))
    return EnvironmentPaths(**json.loads(done.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lock", type=pathlib.Path, help="pinned requirements")
    parser.add_argument("--facts", type=pathlib.Path, help="write what was made here, as JSON")
    args = parser.parse_args()
    try:
        facts = ensure(args.lock, cache_folder())
    except EnvError as error:
        say(str(error))
        return 1
    if args.facts:
        args.facts.write_text(json.dumps(dataclasses.asdict(facts)))
    else:
        print(facts.python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
