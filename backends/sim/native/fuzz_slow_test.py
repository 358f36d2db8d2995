"""The simulator under AddressSanitizer and UndefinedBehaviorSanitizer: no report for any stream of
commands, nor in its own C++ tests.

`FUZZ_STREAMS` and `FUZZ_FIRST` in the environment choose other streams.
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
STREAMS = 100_000
TESTS = sorted(HERE.glob("*_test.cc"))
FLAGS = (
    *("-std=c++20", "-O1", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"),
    "-fsanitize=address,undefined,float-cast-overflow",
)
# A kernel's own allocations are not leaks of the simulator; an error ends a run midway.
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """The simulator's objects, without those of its Python module."""
    folder = tmp_path_factory.mktemp("objects")
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    assert compiler, "a C++ compiler is needed"

    def compile_(source):
        out = folder / f"{source.stem}.o"
        command = [compiler, *FLAGS, f"-I{ROOT}", "-c", str(source), "-o", str(out)]
        subprocess.run(command, check=True)
        return out

    sources = [p for p in sorted(HERE.glob("*.cc")) if not p.name.endswith("_module.cc")]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = dict(zip(sources, pool.map(compile_, sources), strict=True))
    library = [out for source, out in found.items() if source not in TESTS]

    def linked(test):
        program = folder / test.stem
        words = [compiler, *FLAGS, str(found[test]), *map(str, library), "-ldl", "-o", str(program)]
        subprocess.run(words, check=True)
        return program

    return linked


@pytest.mark.parametrize("test", TESTS, ids=[test.stem for test in TESTS])
def test_no_sanitizer_reports(objects, test):
    words = [str(objects(test))]
    if test.stem == "commands_test":
        given = (("FUZZ_STREAMS", STREAMS), ("FUZZ_FIRST", 0))
        words += [os.environ.get(name, str(otherwise)) for name, otherwise in given]
    done = subprocess.run(words, env={**os.environ, **SETTINGS}, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "runtime error" not in done.stderr
    print(done.stdout)
