"""A place: an empty folder to run the command in, with two kernels and a store of its own."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from search.evolve import main
from search.store.store import Store
from testing.cli.beginnings import hiding, signalled
from testing.cli.variables import variables

GUARD = 1800.0  # seconds: only what hangs waits so long
TARGETS = Path(__file__).parents[2] / "backends" / "targets"
SCALE = """def scale(x: f32[M, K], g: f32[K]) -> f32[M, K]:
    \"\"\"Scale the columns of x.\"\"\"
    y[m, k] = x[m, k] * g[k]
    return y

tune(M=64, K=96)
check(M=3, K=5)
"""
ROWS = """def rows(x: f32[M, K], w: f32[K, N]) -> f32[M, N]:
    \"\"\"Multiply x by w.\"\"\"
    y[m, n] = sum(x[m, k] * w[k, n], k)
    return y

tune(M=64, K=96, N=48)
check(M=3, K=5, N=7)
"""


class Place:
    """An empty folder to run the command in, with two kernels and a store of its own.

    target: that `evolve` is for.
    """

    def __init__(self, folder, target):
        self.target = target
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        for each in (self.home, self.work):
            each.mkdir()
        (self.work / "scale.kir").write_text(SCALE)
        (self.work / "rows.kir").write_text(ROWS)
        self.given = self.files()

    def files(self):
        """All files but those given, relative to the folder."""
        return {str(p.relative_to(self.folder)) for p in self.folder.rglob("*")}

    def new_files(self):
        """What the command has left."""
        return sorted(self.files() - self.given)

    def _environ(self, more):
        return {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables(self.home, self.work),
            **more,
        }

    def start(self, *words, **more):
        return subprocess.Popen(
            [sys.executable, "-m", "search.evolve", *words],
            env=self._environ(more),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words, **more):
        """Exit code, stdout, stderr."""
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=GUARD)
        return process.returncode, out, err

    def run_here(self, *words, **more):
        """As `run`, in this process: one of its own takes seconds to import."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            with mock.patch.dict(os.environ, self._environ(more), clear=True):
                code = main(words)
        return code, out.getvalue(), err.getvalue()

    def evolve(self, *words, **more):
        """Runs a search that must succeed; its JSON object. In this process, unless another is to find
        other modules."""
        run = self.run if "PYTHONPATH" in more else self.run_here
        code, out, err = run(f"--target={self.target}", "--json", "--workers=1", *words, **more)
        assert code == 0, err
        return json.loads(out)

    def given_target(self, name, like):
        """An option that names a target of one's own, like one of the project's."""
        text = (TARGETS / f"{like}.toml").read_text()
        text = text.replace(f'name = "{like}"', f'name = "{name}"')
        (self.work / f"{name}.toml").write_text(text)
        self.given = self.files()
        return f"--target={name}.toml"

    def without(self, *packages):
        """Variables for a Python that does not find some packages."""
        return self._beginning(hiding(*packages))

    def _beginning(self, lines):
        """Variables for a Python that begins with some lines."""
        folder = Path(tempfile.mkdtemp(prefix="beginning-", dir=self.folder))
        (folder / "sitecustomize.py").write_text(lines)
        self.given = self.files()
        paths = (str(folder), variables(self.home, self.work)["PYTHONPATH"])
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def signalled(self, number, count):
        """Variables for a run that sends itself a signal when it has stored so many evaluations:
        whoever watches it from outside may be too late on a busy machine."""
        return self._beginning(signalled(number, count))

    def tried(self, store):
        """The candidates of the first run of a store with what became of them, in order."""
        opened = Store(str(self.work / store))
        record = opened.load(opened.runs()[-1])
        opened.close()
        asked = [c for generation in record.generations for c in generation]
        return {c.key: record.outcomes[c.key] for c in asked if c.key in record.outcomes}

    def evaluated(self, store):
        """How many evaluations a store holds by now."""
        if not (self.work / store).exists():
            return 0
        try:
            with sqlite3.connect(f"file:{self.work / store}?mode=ro", uri=True) as connection:
                return connection.execute("select count(*) from evaluations").fetchone()[0]
        except sqlite3.OperationalError:
            return 0
