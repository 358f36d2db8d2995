"""A Python toolchain over a virtual environment made from a lock file."""

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{launcher}",
    python_version = "PY3",
    # The default asks for a program named "python", which Debian lacks.
    stub_shebang = "#!{python}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtime_pair",
    toolchain_type = "@rules_python//python:toolchain_type",
)

cc_library(
    name = "pybind11",
    hdrs = glob([
        "include/python/**/*.h",
        "include/pybind11/**/*.h",
    ]),
    includes = [
        "include/pybind11",
        "include/python",
    ],
)
"""

def find_python(rctx):
    """The Python that environments are made with."""
    for name in [rctx.os.environ.get("SPECIATE_PYTHON", ""), "python3.11", "python3"]:
        found = rctx.which(name) if name and "/" not in name else name
        if found:
            return found
    fail("No Python found. Install Python 3.11 or newer, or name one in SPECIATE_PYTHON.")

def _python_env_impl(rctx):
    # rctx.path of a label makes Bazel watch the file: when the lock or the
    # program changes, this runs again.
    result = rctx.execute(
        [
            find_python(rctx),
            rctx.path(rctx.attr._maker),
            rctx.path(rctx.attr.lock),
            "--facts=facts.json",
        ],
        quiet = False,
        timeout = 3600,
    )
    if result.return_code:
        fail("The Python environment could not be made; the reason is above.")
    facts = json.decode(rctx.read("facts.json"))

    # Copies, not links: what lies outside may go while Bazel has it in mind.
    for source, copy in [
        (facts["include"], "include/python"),
        (facts["pybind11_include"], "include/pybind11"),
    ]:
        copied = rctx.execute(["sh", "-c", "mkdir -p include && cp -rL \"$0\" \"$1\"", source, copy])
        if copied.return_code:
            fail("The headers in %s could not be copied: %s" % (source, copied.stderr))
    tag = rctx.execute([facts["python"], "-c", "import sys; print(sys.implementation.cache_tag)"])
    if tag.return_code:
        fail("The environment's Python does not start: " + tag.stderr)
    rctx.file("tag.bzl", "CACHE_TAG = \"%s\"\n" % tag.stdout.strip())
    rctx.file("BUILD.bazel", _BUILD.format(**facts))
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)

python_env = repository_rule(
    doc = "Makes @NAME//:toolchain, @NAME//:pybind11 and @NAME//:tag.bzl from a lock file. " +
          "Runs at each start of Bazel's server, and so mends a deleted environment.",
    implementation = _python_env_impl,
    attrs = {
        "lock": attr.label(
            doc = "Pinned requirements, as pip reads them.",
            allow_single_file = True,
            mandatory = True,
        ),
        "_maker": attr.label(
            allow_single_file = True,
            default = "//bazel:make_python_env.py",
        ),
    },
    environ = [
        "SPECIATE_PYTHON",
        "XDG_CACHE_HOME",
    ],
    local = True,
)
