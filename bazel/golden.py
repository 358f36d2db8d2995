"""Golden texts: what a test expects, kept in a file and renewed by one command.

A test takes the `golden` fixture of the root conftest.py and calls
`golden("ir/golden/matmul.txt", text)`; paths are relative to the root of the tree.
"""

import dataclasses
import difflib
import pathlib
from collections.abc import Mapping

OPTION = "--update-golden"


class Mismatch(AssertionError):
    """A text differs from its golden file; shows how, and how to renew it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Golden:
    """Compares texts with golden files, or renews these.

    Attributes:
      seen: root of the tree as the test sees it.
      written: root of the tree that is written to, or None to compare only.
      renew: the command that renews the files of this test.
    """

    seen: pathlib.Path
    written: pathlib.Path | None
    renew: str

    def __call__(self, path: str, text: str) -> None:
        """Checks that the file at `path` holds `text`, or makes it so.

        Raises:
          Mismatch: it does not, and golden texts are not being renewed.
        """
        __tracebackhide__ = True  # The report says it all.
        file = self.seen / path
        expected = file.read_text(encoding="utf-8") if file.exists() else None
        if text == expected:
            return
        if self.written is None:
            raise Mismatch(self._report(path, expected, text))
        target = self.written / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def _report(self, path: str, expected: str | None, text: str) -> str:
        if expected is None:
            what = f"{path} does not exist; it would hold:\n{text}"
        else:
            diff = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), path, "this run", lineterm=""
            )
            what = "\n".join([f"{path} differs:", *diff])
        return f"{what}\n\nIf the new text is right: {self.renew}"


def golden_for(
    test_file: str, root: pathlib.Path, update: bool, environ: Mapping[str, str]
) -> Golden:
    """The Golden for a test, under Bazel or not.

    Args:
      test_file: the test's file, relative to `root`.
      root: root of the tree as the test sees it.
      update: whether golden texts are to be renewed.
      environ: the process's environment. Bazel sets TEST_TARGET for a test, and
        BUILD_WORKSPACE_DIRECTORY (the real tree) only under `bazel run`.

    Raises:
      ValueError: asked to update under `bazel test`, which cannot write.
    """
    target = environ.get("TEST_TARGET")
    workspace = environ.get("BUILD_WORKSPACE_DIRECTORY")
    if target:
        renew = f"./bazelw run {_own_target(target, test_file)} -- {OPTION}"
    else:
        renew = f"python3 -m pytest {test_file} {OPTION}"
    if not update:
        return Golden(root, None, renew)
    if target and not workspace:
        raise ValueError(f"{OPTION} cannot write under `bazel test`; use: {renew}")
    return Golden(root, pathlib.Path(workspace) if workspace else root, renew)


def _own_target(target: str, test_file: str) -> str:
    """The target of one test file: that of its folder may be in shards, which Bazel does not run."""
    package = target.partition(":")[0]
    inside = f"{package.removeprefix('//')}/"
    if not test_file.startswith(inside):
        return target
    return f"{package}:{test_file.removeprefix(inside).removesuffix('.py')}"
