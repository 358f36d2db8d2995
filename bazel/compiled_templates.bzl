"""Templates compiled ahead, where `backends/emit.py` looks for them."""

def _compiled_templates(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run(
        executable = ctx.executable.compiler,
        arguments = [folder.path],
        outputs = [folder],
        mnemonic = "Templates",
    )
    files = depset([folder])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

compiled_templates = rule(
    implementation = _compiled_templates,
    attrs = {
        # As the tests have it, so that nothing is built twice.
        "compiler": attr.label(
            default = "//backends:compile_templates",
            executable = True,
            cfg = "target",
        ),
    },
)
