"""Loads the simulator's compiled module: from the build, or compiled once and cached."""

import functools
import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

from backends.shared.kept import cache_folder, once

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_NAME = "_simulator"
_FLAGS = ("-O3", "-std=c++20", "-fPIC", "-fvisibility=hidden")


class BuildError(RuntimeError):
    """The simulator cannot be compiled here. The message says what is missing."""


@functools.cache
def load() -> ModuleType:
    """The module `_simulator`: `simulate`, `event_rate`, `SimulationError`.

    Raises BuildError if it is not built, and there is no compiler or the compiler fails.
    """
    try:
        return importlib.import_module(f"{__package__}.{_NAME}")
    except ModuleNotFoundError:
        pass
    return _import(_built())


def device_include() -> Path:
    """The folder for `-I`, because generated kernels include "device.h"."""
    return _HERE / "device"


def _sources() -> list[Path]:
    return sorted(p for p in _HERE.glob("*.cc") if not p.name.endswith("_test.cc"))


def _digest(compiler: str) -> str:
    state = hashlib.sha256()
    for path in [*_sources(), *sorted(_HERE.glob("*.h")), *sorted(_HERE.glob("device/*.h"))]:
        state.update(path.relative_to(_HERE).as_posix().encode() + b"\0" + path.read_bytes())
    state.update(repr((sys.version, sysconfig.get_platform(), compiler, _FLAGS)).encode())
    return state.hexdigest()[:20]


def _built() -> Path:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise BuildError(
            "the simulator is not built, and there is no C++ compiler: install g++ 12 or newer,"
            " or name a compiler in CXX"
        )
    folder = cache_folder() / _digest(compiler)
    module = folder / (_NAME + sysconfig.get_config_var("EXT_SUFFIX"))
    return once(module, lambda: _compile(compiler, module))


def _compile(compiler: str, module: Path) -> None:
    import pybind11  # only needed here

    print("compiling the simulator, once ...", file=sys.stderr)
    includes = [_ROOT, sysconfig.get_path("include"), pybind11.get_include()]
    flags = [*_FLAGS, *(f"-I{path}" for path in includes)]
    with tempfile.TemporaryDirectory(dir=module.parent) as work:
        objects = [Path(work) / f"{path.stem}.o" for path in _sources()]
        jobs = [
            [compiler, *flags, "-c", str(source), "-o", str(out)]
            for source, out in zip(_sources(), objects, strict=True)
        ]
        _run_all(jobs)
        made = Path(work) / module.name
        _run_all([[compiler, "-shared", *map(str, objects), "-ldl", "-o", str(made)]])
        made.replace(module)


def _run_all(commands: list[list[str]]) -> None:
    width = os.cpu_count() or 1
    for first in range(0, len(commands), width):
        running = [
            subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for c in commands[first : first + width]
        ]
        outputs = [(process, process.communicate()[0]) for process in running]
        for process, output in outputs:
            if process.returncode != 0:
                raise BuildError(f"the simulator does not compile:\n{output[-4000:]}")


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{__package__}.{_NAME}", path)
    # the file's suffix is that of an extension module
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
