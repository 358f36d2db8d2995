"""The code object of a generated kernel's source, compiled without the device that loads it."""

def _code_object(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".bin")
    ctx.actions.run(
        executable = ctx.executable.compiler,
        arguments = ["--source=" + ctx.file.source.path, "--out=" + out.path],
        inputs = [ctx.file.source, ctx.file.record],
        outputs = [out],
        mnemonic = "CodeObject",
    )
    return [DefaultInfo(files = depset([out]))]

code_object = rule(
    implementation = _code_object,
    attrs = {
        "source": attr.label(allow_single_file = True, mandatory = True),
        "record": attr.label(allow_single_file = True, mandatory = True),
        # As the tests have it, so that nothing is built twice.
        "compiler": attr.label(
            default = "//kernels_generated:code_object",
            executable = True,
            cfg = "target",
        ),
    },
)
