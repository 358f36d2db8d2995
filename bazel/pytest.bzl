"""pytest under Bazel."""

load("@rules_python//python:defs.bzl", "py_test")

_MAIN = "//bazel:pytest_main.py"

def pytest_test(
        name,
        srcs,
        args = [],
        data = [],
        deps = [],
        size = "medium",
        timeout = "eternal",
        **kwargs):
    """A test target that runs pytest over some files.

    --test_filter, --test_arg, --runs_per_test and shard_count work as for any
    test. `bazel run` of it with `-- --update-golden` renews golden texts, where it has one shard.

    Args:
      name: name of the target.
      srcs: the test files; each is collected.
      args: more arguments for pytest.
      data: files that the tests read.
      deps: libraries that the tests import.
      size: as for any test; it says how much of the machine a test takes.
      timeout: as for any test. An hour by default, which only ends what hangs: a busy machine
        may take twenty times as long as an idle one.
      **kwargs: anything else a py_test takes (tags, shard_count, ...).
    """
    py_test(
        name = name,
        size = size,
        timeout = timeout,
        srcs = srcs + [_MAIN],
        main = _MAIN,
        args = ["$(rootpath %s)" % src for src in srcs] + args,
        data = data + ["//:pytest.ini"],
        deps = deps + ["//:conftest"],
        **kwargs
    )
