"""One call makes the targets of a folder of C++ files, now and later.

  x.h, x.cc    part of the library
  x_test.cc    a test: a program that returns 0 if all is well
  x_module.cc  the Python extension module _x
"""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load(":pybind.bzl", "pybind_extension")

_WARNINGS = [
    "-Wall",
    "-Wextra",
]

def native_folder(folder):
    """Makes the library FOLDER, the tests FOLDER/x_test and the modules FOLDER/_x.so.

    Includes are written from the root of the tree: a folder of its own on the
    search path would hide system headers, <memory.h> for one.

    Args:
      folder: relative to the BUILD file.

    Returns:
      The labels of the extension modules.
    """
    tests = native.glob([folder + "/**/*_test.cc"], allow_empty = True)
    modules = native.glob([folder + "/*_module.cc"], allow_empty = True)
    cc_library(
        name = folder,
        srcs = native.glob(
            [folder + "/**/*.cc"],
            exclude = tests + modules,
            allow_empty = True,
        ),
        hdrs = native.glob([folder + "/**/*.h"], allow_empty = True),
        copts = _WARNINGS,
    )
    for test in tests:
        cc_test(
            name = test[:-len(".cc")],
            size = "medium",
            timeout = "eternal",
            srcs = [test],
            copts = _WARNINGS,
            deps = [":" + folder],
        )
    return [_extension(folder, module) for module in modules]

def _extension(folder, source):
    word = source[len(folder) + 1:-len("_module.cc")]
    name = "%s/_%s" % (folder, word)
    pybind_extension(
        name = name,
        srcs = [source],
        copts = _WARNINGS,
        deps = [":" + folder],
    )
    return ":" + name + ".so"
