"""How the project is built as a distribution: all of it in one package, `speciate`.

The folders of the tree are packages by generic names (`ir`, `search`), which must not be on the
import path of whoever installs the project. So the wheel holds each of them below `speciate/`, and
its import statements say so: `from ir.spec import Spec` becomes `from speciate.ir.spec import Spec`.
Nothing else is changed. pyproject.toml names `BuildPy` as setuptools' command, which imports this
file alone: it may use nothing of the project.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent.parent
PACKAGE = "speciate"
FOLDERS = (
    "backends",
    "frontends",
    "ir",
    "kernels_generated",
    "machines",
    "search",
    "templates",
)
_LEFT_OUT = {"__pycache__", "golden", "testdata", "testing", "BUILD.bazel"}


class BuildPy(build_py):
    """Copies the tree's folders below the package, with imports that name them there."""

    def run(self) -> None:
        """Writes all files of the wheel."""
        # What an earlier build left would become part of the wheel.
        shutil.rmtree(Path(self.build_lib) / PACKAGE, ignore_errors=True)
        for source, inside in wheel_files():
            to = Path(self.build_lib) / inside
            to.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".py":
                text = source.read_text(encoding="utf-8")
                to.write_text(below_package(text, str(source)), encoding="utf-8")
            else:
                self.copy_file(str(source), str(to))

    def get_source_files(self) -> list[str]:
        """What a source distribution holds of the tree."""
        return [str(source.relative_to(ROOT)) for source, _ in wheel_files()]


def wheel_files() -> Iterator[tuple[Path, PurePosixPath]]:
    """Each file of the wheel, and where it lies in it. Tests stay out, and what only they use."""
    for top in (PACKAGE, *FOLDERS):
        for file in sorted((ROOT / top).rglob("*")):
            path = file.relative_to(ROOT)
            if file.is_file() and not _left_out(path):
                inside = path.as_posix()
                yield file, PurePosixPath(inside if top == PACKAGE else f"{PACKAGE}/{inside}")


def _left_out(path: Path) -> bool:
    hidden = any(part in _LEFT_OUT or part.startswith(".") for part in path.parts)
    return hidden or path.name.endswith(("_test.py", "_test.cc")) or path.name == "conftest.py"


def below_package(text: str, where: str) -> str:
    """A module's text whose imports of the tree's folders name them below the package. ValueError
    for `import ir.spec`, which binds a name that the text then goes on from."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text, where)):
        row = getattr(node, "lineno", 0) - 1
        if isinstance(node, ast.ImportFrom) and _ours(node.module or ""):
            lines[row] = lines[row].replace("from ", f"from {PACKAGE}.", 1)
        elif isinstance(node, ast.Import) and any(_ours(alias.name) for alias in node.names):
            name = node.names[0].name
            if len(node.names) > 1 or "." in name:
                raise ValueError(f"{where}:{row + 1}: write `from ... import ...`")
            lines[row] = lines[row].replace("import ", f"from {PACKAGE} import ", 1)
    return "".join(lines)


def _ours(module: str) -> bool:
    return module.partition(".")[0] in FOLDERS
