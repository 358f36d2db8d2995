"""Builds a kernel at some sizes, and writes a header and a source that launch it without Python.

The source contains the compiled code, or the kernels for the compiler of the language, and needs a
driver to run. Without --schedule the kernel has the schedule that the search would begin with.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from backends.backend import BackendError, Exports
from backends.registry import target_names
from ir.errors import KernelError
from search.cli.shapes import worded, workload
from tools.show import ask_for, asked_for

NAME = "export_c"
EXAMPLES = """
examples:
  export_c --kernel=softmax --target={target} --shape=M=4096,K=4096 --out=kernels
      the sizes that it is tuned for and launched at
  export_c --kernel=my_kernel.kir --target={target} --schedule=my_kernel.sched --backend=BACKEND --out=.
      by a schedule of a search's results
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use or input."""
    parser = argparse.ArgumentParser(
        prog=NAME,
        description=__doc__,
        epilog=EXAMPLES.format(target=target_names()[0]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask_for(parser, "the sizes")
    parser.add_argument("--out", required=True, help="a folder")
    asked = parser.parse_args(arguments)
    folder = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    try:
        one = asked_for(asked, folder)
        serving, nest, machine = one.backend, one.nest, one.machine
        if not isinstance(serving, Exports):
            raise KernelError(
                f"backend `{serving.manifest.name}` exports no C",
                where="--backend",
                hint="another of the target's may",
            )
        shapes = (worded(asked.shape),) if asked.shape else ()
        sizes = workload(nest.spec, one.workload.tune, shapes)[0].sizes
        with tempfile.TemporaryDirectory() as name:
            built = serving.build(serving.emit(nest, machine), nest, machine, Path(name))
            texts = serving.exported(built, nest, machine, sizes)
        out = folder / asked.out
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
            print(out / name)
    except KernelError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    except BackendError as error:
        print(f"{NAME}: {error.stage}: {error.reason}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
