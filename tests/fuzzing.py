"""Fuzzing: spoiled texts of every kind that the project reads, each with what its reader may raise.

Texts begin as those of the tree. Each is spoiled a few times: characters and lines deleted, repeated,
swapped, joined with another text, replaced by words that readers know or by hostile ones.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.backend import BackendError
from backends.gpu.source.launches import value
from backends.manifest import manifest
from backends.registry import target
from ir.errors import KernelError
from ir.parse.parse import parse_schedule, parse_spec, parse_workload
from search.cli.shapes import worded
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.prompt.answer import Refused, edited
from search.record.record import parse_record
from search.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
WORDS = (
    *("(", ")", "[", "]", "{", "}", ",", ":", "=", "+", "-", "*", "/", "//", "%", ".", "@", "#"),
    *("\n", "\t", " ", '"', '"""', "'", "\\", "\0", "\ud800", "\u202e", "é", "𝕏", "\x1b[2J"),
    *(
        "0",
        "1",
        "-1",
        "1e999",
        "nan",
        "inf",
        "9" * 30,
        "1_0",
        "0x1",
        "True",
        "None",
        json.dumps(None),
        "[]",
    ),
    *("sum", "max", "f32", "bf16", "i", "k.outer", "tile", "def", "return", "lambda", "import"),
    *("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "```", "../", "__class__", "(" * 60),
)
SCHEDULES = "kernels_generated/*/*/schedule.sched"
LAUNCH_TEXTS = (
    "cdiv(M, 64) * (B)",
    "round_up(max(0, 128 * (D_WIDTH)), 1024) + round_up(160 * (I_WIDTH), 1024)",
    "all(((D) * (B)) % 2 == 0, (B) % 2 == 0)",
)
ANSWER = """The store is the slow part.

<<<<<<< SEARCH schedule.sched
tile(m, size=16)
=======
tile(m, size=32)
>>>>>>> REPLACE

<<<<<<< SEARCH kernel.cc
```
int kernel;
```
=======
```
int other;
```
>>>>>>> REPLACE
"""
UNNAMED = """schedule.sched
```
<<<<<<< SEARCH
  tile(m, size=16)
=======
  tile(m, size=32)
>>>>>>> REPLACE
```
<<<<<<< SEARCH
int kernel;
=======
int other;
>>>>>>> REPLACE
"""
FILES = {"schedule.sched": "schedule(scale)\ntile(m, size=16)\n", "kernel.cc": "int kernel;\n"}


@dataclass(frozen=True, slots=True)
class Reader:
    """A kind of text."""

    texts: Sequence[str]  # that can be read
    read: Callable[[str], object]
    raises: type[Exception]  # documented, for what cannot be read
    share: int  # of the inputs: more of what is read quickly


@contextmanager
def readers() -> Iterator[dict[str, Reader]]:
    """All readers by name, while their files are there."""
    library = [f.read_text(encoding="utf-8") for f in sorted(ROOT.glob("ir/library/*.kir"))]
    with tempfile.TemporaryDirectory() as name:
        store = _Stored(Path(name))
        yield {
            "spec": Reader([t.split("\ntune")[0] for t in library], parse_spec, KernelError, 8),
            "workload": Reader(library, parse_workload, KernelError, 8),
            "schedule": Reader(_texts(SCHEDULES), parse_schedule, KernelError, 24),
            "record": Reader(
                _texts("kernels_generated/*/*/record.toml"), parse_record, KernelError, 8
            ),
            "target": Reader(_targets(), _target(Path(name)), KernelError, 3),
            "manifest": Reader(_texts("backends/*/backend.toml"), _manifest, KernelError, 8),
            "shape": Reader(["M=2048,K=512@3", "B=4"], worded, KernelError, 12),
            "launch": Reader(LAUNCH_TEXTS, _launch, BackendError, 12),
            "answer": Reader([ANSWER, UNNAMED], lambda text: edited(text, FILES), Refused, 12),
            **{f"stored {part}": store.reader(part) for part in _Stored.PARTS},
        }
        store.close()


def spoiled(text: str, other: str, rng: random.Random) -> str:
    """A text after one to four changes. other: what parts come from, too."""
    for _ in range(rng.randint(1, 4)):
        a = rng.randint(0, len(text))
        b = min(len(text), a + rng.choice((0, 1, 2, 8, 80)))
        c = min(len(text), b + rng.choice((1, 8, 80)))
        lines = text.splitlines(keepends=True) or [""]
        n = rng.randrange(len(lines))
        match rng.randrange(8):
            case 0:
                text = text[:a] + text[b:]
            case 1 | 2:
                text = text[:a] + rng.choice(WORDS) + text[rng.choice((a, b)) :]
            case 3:
                text = text[:a] + text[b:c] + text[a:b] + text[c:]
            case 4:
                text = "".join([*lines[:n], *lines[n + 1 :]])
            case 5:
                text = "".join([*lines[:n], lines[n] * rng.choice((2, 3, 50)), *lines[n + 1 :]])
            case 6:
                at = rng.randint(0, len(other))
                text = text[:a] + other[at : at + rng.choice((8, 80, 400))] + text[b:]
            case 7:
                text = text[:a]
    return text


def fuzzed(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Reads spoiled texts: how many of each kind were read without an error, and what each fault
    was: an exception that is not documented, with its kind and its text."""
    rng, read, faults = random.Random(seed), Counter[str](), list[str]()
    with readers() as all_of_them:
        names = list(all_of_them)
        shares = [all_of_them[name].share for name in names]
        for name in rng.choices(names, shares, k=count):
            one = all_of_them[name]
            text = spoiled(rng.choice(one.texts), rng.choice(one.texts), rng)
            try:
                one.read(text)
            except one.raises as error:
                if not str(error):
                    faults.append(f"{name}: an error without a word: {text!r}")
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__}: {error}: {text!r}")
            else:
                read[name] += 1
    return read, faults


def _texts(pattern: str) -> list[str]:
    return [f.read_text(encoding="utf-8") for f in sorted(ROOT.glob(pattern))]


def _targets() -> list[str]:
    """The targets' files under a name of their own, as only the project's files may have theirs."""
    own = re.compile(r'^name = "\w+"', re.MULTILINE)
    return [own.sub('name = "mine"', text) for text in _texts("backends/targets/*.toml")]


def _target(folder: Path) -> Callable[[str], object]:
    file = folder / "chip.toml"

    def read(text: str) -> object:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        return target(str(file))

    return read


def _manifest(text: str) -> object:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return manifest(table)


def _launch(text: str) -> object:
    return value(text, {"M": 5, "B": 3, "D": 8, "D_WIDTH": 64, "I_WIDTH": 32})


class _Stored:
    """A store with one run, whose texts are replaced one at a time."""

    PARTS: dict[str, str] = {
        "settings": "UPDATE runs SET settings = ?",
        "environment": "UPDATE runs SET environment = ?",
        "candidate": "UPDATE nodes SET candidate = ?",
        "outcome": "UPDATE evaluations SET outcome = ?",
    }

    def __init__(self, folder: Path):
        self.file = folder / "runs.db"
        self.store = Store(str(self.file))
        settings = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8})
        self.run = self.store.start(settings, {"context": "abc", "sandbox": {"landlock": "yes"}})
        candidate = Candidate("spec", "root", "chip", "tongue")
        self.store.asked(self.run, 0, [candidate], 0.0)
        good = Evaluation(2.0, "simulated", "simulator", figures={"cycles": 0.1})
        self.store.evaluated(self.run, candidate.key, "abc", good, 1.0)
        self.direct = sqlite3.connect(self.file, isolation_level=None)

    def reader(self, part: str) -> Reader:
        """The reader of a text of the run."""
        (whole,) = self._one(self.PARTS[part])

        def read(text: str) -> Any:
            self.direct.execute(self.PARTS[part], (text.encode("utf-8", "replace").decode(),))
            try:
                return self.store.load(self.run)
            finally:
                self.direct.execute(self.PARTS[part], (whole,))

        return Reader([whole, json.dumps(json.loads(whole), indent=1)], read, KernelError, 2)

    def _one(self, update: str) -> tuple[str]:
        table, column = update.split()[1], update.split()[3]
        return self.direct.execute(f"SELECT {column} FROM {table}").fetchone()

    def close(self) -> None:
        """Closes it."""
        self.direct.close()
        self.store.close()
