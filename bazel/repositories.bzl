"""External repositories, arranged so that nothing is fetched from the network.

Bazel 4, which Debian and Ubuntu ship, insists on repositories named rules_cc,
rules_java and remote_coverage_tools and would download them. The small files
under shims/ answer in their place.
"""

def _files_repository_impl(rctx):
    packages = {}
    for label, path in rctx.attr.files.items():
        rctx.symlink(label, path)
        folder, _, name = path.rpartition("/")
        packages[folder] = packages.get(folder, False) or name == "BUILD.bazel"
    for folder, has_build_file in packages.items():
        if not has_build_file:
            rctx.file(folder + "/BUILD.bazel", "")
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)

_files_repository = repository_rule(
    doc = "A repository made of links to files of this one.",
    implementation = _files_repository_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(
            doc = "Which file appears under which path.",
            mandatory = True,
        ),
    },
)

def stand_ins():
    """Declares rules_cc, rules_python and, for Bazel 4, the rest it asks for."""
    _files_repository(
        name = "rules_cc",
        files = {"//bazel:shims/rules_cc.bzl": "cc/defs.bzl"},
    )
    _files_repository(
        name = "rules_python",
        files = {
            "//bazel:shims/rules_python.BUILD": "python/BUILD.bazel",
            "//bazel:shims/rules_python.bzl": "python/defs.bzl",
        },
    )

    # Debian's build has no version number and reports "". Newer ones hold
    # toolchains in their own rules_java, which must not be hidden.
    version = native.bazel_version
    if version and not version.startswith("4."):
        return
    _files_repository(
        name = "rules_java",
        files = {"//bazel:shims/rules_java.bzl": "java/defs.bzl"},
    )
    _files_repository(
        name = "remote_coverage_tools",
        files = {
            "//bazel:shims/no_coverage.py": "no_coverage.py",
            "//bazel:shims/remote_coverage_tools.BUILD": "BUILD.bazel",
        },
    )
