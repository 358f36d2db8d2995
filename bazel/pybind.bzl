"""Python extension modules in C++."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def pybind_extension(name, srcs, deps = [], copts = [], **kwargs):
    """Builds NAME.so, which Python imports under the last part of that name.

    Args:
      name: path of the module below this package, such as "native/_simulator".
      srcs: files with the PYBIND11_MODULE and what else is its own.
      deps: cc_library targets.
      copts: more options for the compiler.
      **kwargs: anything else a cc_binary takes.
    """
    cc_binary(
        name = name + ".so",
        srcs = srcs,
        copts = copts + ["-fvisibility=hidden"],
        linkshared = True,
        deps = deps + ["@python_env//:pybind11"],
        **kwargs
    )
