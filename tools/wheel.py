"""Builds the distribution: one package, `speciate`.

The folders of the repository are packages with generic names (`ir`, `search`). These must not be on
the import path of a user. So the wheel holds each of them below `speciate/`, and its import
statements are rewritten: `from ir.spec import Spec` becomes `from speciate.ir.spec import Spec`.

Nothing else is changed. pyproject.toml names `BuildPy` as the command of setuptools, which imports
this file alone: this file may import nothing of the project.
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
    """Copies the folders below the package and rewrites their imports."""

    def run(self) -> None:
        """Writes all files of the wheel."""
        # Files of an earlier build would become part of the wheel.
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
        """Returns the files of the repository that a source distribution contains."""
        return [str(source.relative_to(ROOT)) for source, _ in wheel_files()]


def wheel_files() -> Iterator[tuple[Path, PurePosixPath]]:
    """Yields each file of the wheel with its path in it. Tests and what only they use are left
    out."""
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
    """Returns a module's text with its imports of the folders renamed below the package.

    Raises ValueError for `import ir.spec`, because the text then uses the name that it binds.
    """
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
