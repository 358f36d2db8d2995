"""Builds a kernel at some sizes, and writes a header and a source that launch it without Python.

The source contains the compiled code, or the source of the kernels for their compiler. It needs a
driver to run. Without --schedule, the kernel uses the first schedule of the search.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from backends.backend import BackendError, Exports
from backends.registry import backend, target_names
from ir.errors import KernelError
from ir.machine import Machine
from search.cli.files import require_folder
from search.cli.shapes import worded, workload
from tools.show import ask_for, asked_for

NAME = "export_c"
EXAMPLES = """
examples:
  export_c --kernel=softmax --target={target} --backend=BACKEND --shape=M=4096,K=4096 --out=kernels
      the sizes that it is tuned for and launched at
  export_c --kernel=my_kernel.kir --target={target} --schedule=my_kernel.sched --backend=BACKEND --out=.
      by a schedule of a search's results
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage or input."""
    parser = argparse.ArgumentParser(
        prog=NAME,
        description=__doc__,
        epilog=EXAMPLES.format(target=target_names()[0]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask_for(parser, "the sizes")
    parser.add_argument("--out", required=True, help="a folder; it is created if necessary")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files with other contents"
    )
    asked = parser.parse_args(arguments)
    folder = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    try:
        require_folder("--out", folder / asked.out)
        one = asked_for(asked, folder)
        serving, nest, machine = one.backend, one.nest, one.machine
        if not isinstance(serving, Exports):
            raise _exports_none(serving.manifest.name, machine)
        shapes = (worded(asked.shape),) if asked.shape else ()
        sizes = workload(nest.spec, one.workload.tune, shapes)[0].sizes
        with tempfile.TemporaryDirectory() as name:
            built = serving.build(serving.emit(nest, machine), nest, machine, Path(name))
            texts = serving.exported(built, nest, machine, sizes)
        _write(folder / asked.out, texts, asked.overwrite)
    except KernelError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    except BackendError as error:
        print(f"{NAME}: {error.stage}: {error.reason}", file=sys.stderr)
        return 2
    return 0


def _exports_none(name: str, machine: Machine) -> KernelError:
    """Returns the error for a backend that does not export. It names the backends of the target
    that do."""
    able = [other for other in machine.backends if isinstance(backend(other), Exports)]
    return KernelError(
        f"backend `{name}` exports no C",
        where="--backend",
        allowed=", ".join(able) or f"none of target `{machine.name}`",
        hint="add --backend=NAME" if able else "name another target",
    )


def _write(out: Path, texts: Mapping[str, str], overwrite: bool) -> None:
    """Writes all files or none. Kernels of one language may share a folder, because their headers
    are equal."""
    for name, text in texts.items():
        file = out / name
        if not overwrite and file.exists() and file.read_bytes() != text.encode():
            raise KernelError(
                f"`{file}` already exists with another text",
                where="--out",
                hint="name another folder, or add --overwrite",
            )
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
        print(out / name)


if __name__ == "__main__":
    sys.exit(main())
