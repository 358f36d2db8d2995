"""The wheel: what a user has after `pip install .`, and the example at the top of README.md with it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import ROOT
from tools.wheel import wheel_files

BESIDE = ("pyproject.toml", "README.md", "LICENSE", "tools/wheel.py")
# Of the tree's packages, `speciate` alone is found; of the example's search, two candidates are tried.
PROGRAM = """
import sys
sys.path.insert(0, {site!r})
if __name__ == "__main__":
    for name in ("ir", "tools", "search", "backends", "machines", "templates", "frontends"):
        try:
            __import__(name)
        except ModuleNotFoundError:
            continue
        raise AssertionError(name + " is on the import path")
{example}
    assert speciate.__file__.startswith({site!r}), speciate.__file__
    assert fast.source.rstrip() == again.source.rstrip() and "gelu" in again.source
    assert [n for n in sys.modules if n.split(".")[0] in ("ir", "tools", "search", "backends")] == []
    assert (speciate.load("net_kernels")(x) == fast(x)).all()
"""


def run(*words, where, home):
    """A process without the tree on its path, which must end well."""
    kept = ("PATH", "LD_LIBRARY_PATH", "CXX", "XDG_CACHE_HOME")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    variables.setdefault("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    done = subprocess.run(
        [sys.executable, "-I", *words],
        cwd=where,
        env={**variables, "HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of site packages into which the tree is installed."""
    tree, site, home = (tmp_path_factory.mktemp(name) for name in ("tree", "site", "home"))
    inside = [str(source.relative_to(ROOT)) for source, _ in wheel_files()]
    for name in (*inside, *BESIDE):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    options = ("--no-deps", "--no-build-isolation", "--no-compile", "--quiet", "--target")
    run("-m", "pip", "install", *options, str(site), str(tree), where=home, home=home)
    return site


def test_one_package_is_installed(site):
    folders = {p.name for p in site.iterdir() if p.is_dir() and p.name != "bin"}
    assert folders == {"speciate", "speciate-0.1.0.dist-info"}
    assert (site / "bin" / "speciate").is_file()


def test_the_example_of_the_readme_runs_where_it_is_installed(site, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(import torch, speciate\n.*?)```", text, re.S)[1]
    assert len([line for line in example.splitlines() if line]) <= 10
    quick = example.replace("seconds=60", "evaluations=2, quiet=True")
    assert quick != example
    lines = "".join(f"    {line}\n" for line in quick.splitlines())
    (tmp_path / "main.py").write_text(PROGRAM.format(site=str(site), example=lines))
    run(str(tmp_path / "main.py"), where=tmp_path, home=tmp_path)
    assert "<html" in (tmp_path / "search.html").read_text(encoding="utf-8")
    records = list(Path(tmp_path).glob(".local/share/speciate/records/*/cpu/record.toml"))
    assert len(records) == 1
