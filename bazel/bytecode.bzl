"""Python files compiled ahead, each into the `__pycache__` beside it.

Tests run where nothing can be written beside a module, so that each process would compile all that
it imports. Python takes these files without a look at the source, which Bazel has already had.
"""

load("@python_env//:tag.bzl", "CACHE_TAG")

_TOOLCHAIN = "@rules_python//python:toolchain_type"

def _bytecode(ctx):
    package = ctx.label.package + "/" if ctx.label.package else ""
    made = []
    for source in ctx.files.srcs:
        folder, slash, name = source.short_path[len(package):].rpartition("/")
        made.append(ctx.actions.declare_file(
            "%s__pycache__/%s.%s.pyc" % (folder + slash, name[:-len(".py")], CACHE_TAG),
        ))
    pairs = ctx.actions.args()
    for source, out in zip(ctx.files.srcs, made):
        pairs.add(source)
        pairs.add(out)
    pairs.use_param_file("@%s")
    pairs.set_param_file_format("multiline")
    if made:
        ctx.actions.run(
            executable = ctx.toolchains[_TOOLCHAIN].py3_runtime.interpreter_path,
            arguments = [ctx.file._compiler.path, pairs],
            inputs = ctx.files.srcs + [ctx.file._compiler],
            outputs = made,
            mnemonic = "PythonBytecode",
        )
    files = depset(made)
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

bytecode = rule(
    implementation = _bytecode,
    attrs = {
        "srcs": attr.label_list(
            doc = "Files of this package.",
            allow_files = [".py"],
        ),
        "_compiler": attr.label(
            allow_single_file = True,
            default = "//bazel:compile_bytecode.py",
        ),
    },
    toolchains = [_TOOLCHAIN],
)
