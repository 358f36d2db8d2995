"""A Python library over packages that few need, made from a lock file of their own."""

load(":python_env.bzl", "find_python")

_BUILD = """\
load("@rules_python//python:defs.bzl", "py_library")

py_library(
    name = "site",
    srcs = glob(["site/**/*.py"]),
    imports = ["site"],
    visibility = ["//visibility:public"],
)
"""

def _python_site_impl(rctx):
    result = rctx.execute(
        [find_python(rctx), rctx.path(rctx.attr._maker), rctx.path(rctx.attr.lock)],
        timeout = 600,
    )
    if result.return_code:
        fail("The packages of %s could not be installed: %s" % (rctx.attr.lock, result.stderr))

    # A copy, not a link: the cache may be deleted while Bazel still refers to it.
    copied = rctx.execute(["cp", "-rL", result.stdout.strip(), "site"])
    if copied.return_code:
        fail("The packages of %s could not be copied: %s" % (rctx.attr.lock, copied.stderr))
    rctx.file("BUILD.bazel", _BUILD)
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)

python_site = repository_rule(
    doc = "Makes @NAME//:site from a lock file, when a target that is built needs it.",
    implementation = _python_site_impl,
    attrs = {
        "lock": attr.label(
            doc = "Pinned requirements, as pip reads them.",
            allow_single_file = True,
            mandatory = True,
        ),
        "_maker": attr.label(
            allow_single_file = True,
            default = "//bazel:make_cluster_site.py",
        ),
    },
    environ = [
        "SPECIATE_PYTHON",
        "XDG_CACHE_HOME",
    ],
)
