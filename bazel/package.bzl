"""One call makes the targets of a folder of Python files, now and later.

Files are found by their names, so that adding one needs no edit of a BUILD file:

  x.py                 part of the library
  x_test.py            a part of its folder's pytest_test, all_tests
  x_suite_test.py      a pytest_test named x_suite_test, whose tests several processes share
  x_slow_test.py       a pytest_test named x_slow_test, run by --config=slow only
  x_benchmark_test.py  the same, run by --config=benchmark only
  x_device_test.py     the same, run on a GPU machine by --config=device only
  x_ray_test.py        the same, run where Ray is by --config=ray only
  golden/**            data of the tests only, as is testdata/**
  anything else        data of the library

The tests of a file that are marked `slow` are left out of these. The file is named in `slow_parts`,
and the target x_test_slow, run by --config=slow only, has them.

Test files of one folder share a process, because importing torch takes longer than most of
them. The target x_test runs one file; it is "manual", so `//...` does not run a file twice.

A folder below that has no BUILD file of its own belongs to the one above it.
"""

load("@rules_python//python:defs.bzl", "py_binary", "py_library")
load(":bytecode.bzl", "bytecode")
load(":pytest.bzl", "pytest_test")

# How a test that has a target of its own is run. The file name ends so; the first that fits counts.
_KINDS = {
    "_slow_test.py": dict(size = "enormous", tags = ["slow"]),
    "_benchmark_test.py": dict(size = "enormous", tags = ["benchmark", "exclusive"]),
    "_device_test.py": dict(size = "enormous", tags = ["device", "exclusive"], args = ["-m", "device"]),
    "_ray_test.py": dict(size = "enormous", tags = ["ray", "exclusive"], args = ["-m", "ray"]),
    "_suite_test.py": dict(shard_count = 4),
    "_test.py": dict(tags = ["manual"]),
}

# How the tests of a file that are marked `slow` are run.
_SLOW_PART = dict(size = "enormous", tags = ["slow"], args = ["-m", "slow"])

_GROUP = "all_tests"

# Test files of one process: few enough that the last processes of a run keep all cores busy.
_MOST_FILES = 12

_TESTS = ["**/*_test.py"]

_TEST_DATA = [
    "**/golden/**",
    "**/testdata/**",
]

_NO_DATA = [
    "**/*.py",
    "**/.*",
    "**/.*/**",
    "**/__pycache__/**",
    "**/BUILD.bazel",
]

def _below(folder, patterns):
    return [folder + "/" + pattern if folder else pattern for pattern in patterns]

def _files(folder, include, exclude):
    return native.glob(_below(folder, include), exclude = exclude, allow_empty = True)

def _kind(file):
    for ending, kind in _KINDS.items():
        if file.endswith(ending):
            return kind
    fail("%s is no test" % file)

def _groups(files, group):
    """The files that share a process, by the name of the target that runs them."""
    groups = {}
    for file in files:
        if "manual" in _kind(file).get("tags", []):
            folder, slash, _ = file.rpartition("/")
            groups.setdefault(folder + slash + group, []).append(file)
    return groups

def _pytest_tests(files, deps, data, group = _GROUP, most_files = _MOST_FILES, slow_parts = []):
    for file in files:
        pytest_test(
            name = file[:-len(".py")],
            srcs = [file],
            deps = deps,
            data = data,
            **_kind(file)
        )
    for file in slow_parts:
        pytest_test(
            name = file[:-len(".py")] + "_slow",
            srcs = [file],
            deps = deps,
            data = data,
            **_SLOW_PART
        )
    for name, together in _groups(files, group).items():
        count = (len(together) + most_files - 1) // most_files
        pytest_test(
            name = name,
            srcs = together,
            deps = deps,
            data = data,
            shard_count = count if count > 1 else None,
        )

def python_folder(
        name,
        folder = "",
        exclude = [],
        deps = [],
        data = [],
        test_deps = [],
        test_data = [],
        slow_parts = [],
        most_files = _MOST_FILES):
    """The library NAME over the files of a folder, and a target for the tests of each folder.

    Args:
      name: name of the library.
      folder: which folder, relative to the BUILD file; the whole package if empty.
      exclude: glob patterns, relative to the BUILD file, for files of others.
      deps: libraries that the files import.
      data: files that they read, beside those in the folder.
      test_deps: libraries that only the tests import.
      test_data: files that only the tests read, beside those in the folder.
      slow_parts: test files, relative to the BUILD file, with tests that are marked `slow`.
      most_files: test files of one process; fewer where they take long.
    """
    sources = _files(folder, ["**/*.py"], exclude + _below(folder, _TESTS + _TEST_DATA))
    bytecode(
        name = name + "_bytecode",
        srcs = sources,
    )
    py_library(
        name = name,
        srcs = sources,
        data = [":" + name + "_bytecode"] + data + _files(folder, ["**"], exclude + _below(folder, _NO_DATA + _TEST_DATA)),
        deps = deps,
    )
    _pytest_tests(
        files = _files(folder, _TESTS, exclude + _below(folder, _TEST_DATA)),
        deps = [":" + name] + deps + test_deps,
        data = test_data + _files(folder, _TEST_DATA, exclude),
        slow_parts = slow_parts,
        most_files = most_files,
    )

def python_package(name, **kwargs):
    """python_folder over a whole package, and `sources`: all its files.

    Args:
      name: name of the library; the package's own, by custom.
      **kwargs: see python_folder.
    """
    python_folder(name = name, **kwargs)
    native.filegroup(
        name = "sources",
        srcs = native.glob(
            ["**"],
            exclude = [
                "**/.*/**",
                "**/__pycache__/**",
            ],
        ),
    )

def python_program(name, deps = [], data = [], test_deps = [], slow_parts = []):
    """A program NAME over NAME.py, with the target NAME_tests over NAME_test.py and NAME_*_test.py.

    Args:
      name: name of the program.
      deps: libraries that it imports.
      data: files that it reads.
      test_deps: libraries that only the tests import.
      slow_parts: test files with tests that are marked `slow`.
    """
    library = name + "_library"
    py_library(
        name = library,
        srcs = [name + ".py"],
        data = data,
        deps = deps,
    )
    py_binary(
        name = name,
        srcs = [name + ".py"],
        deps = [":" + library],
    )
    _pytest_tests(
        files = native.glob([name + "_test.py", name + "_*_test.py"], allow_empty = True),
        deps = [":" + library] + deps + test_deps,
        data = native.glob(_TEST_DATA, allow_empty = True),
        group = name + "_tests",
        slow_parts = slow_parts,
        most_files = 2,  # They start the program many times, which takes longer than to import it.
    )

def python_programs(library, except_for = []):
    """A program for each Python file directly in the package that is not a test.

    Args:
      library: the target that holds these files and all that they import.
      except_for: files that are no programs.
    """
    skip = _TESTS + except_for + ["__init__.py"]
    for file in native.glob(["*.py"], exclude = skip, allow_empty = True):
        py_binary(
            name = file[:-len(".py")],
            srcs = [file],
            deps = [library],
        )
