"""The tables of characters that Hypothesis draws texts from, where tests look for them."""

_TOOLCHAIN = "@rules_python//python:toolchain_type"

def _unicode_tables(ctx):
    # Of the root's package, so that it lies in the working folder of a test.
    folder = ctx.actions.declare_directory(".hypothesis")
    ctx.actions.run(
        executable = ctx.toolchains[_TOOLCHAIN].py3_runtime.interpreter_path,
        arguments = [ctx.file._maker.path, folder.path],
        inputs = [ctx.file._maker],
        outputs = [folder],
        mnemonic = "UnicodeTables",
    )
    files = depset([folder])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

unicode_tables = rule(
    implementation = _unicode_tables,
    attrs = {
        "_maker": attr.label(
            allow_single_file = True,
            default = "//bazel:make_unicode_tables.py",
        ),
    },
    toolchains = [_TOOLCHAIN],
)
