"""Backends are found by their folders: one with a backend.toml in it is one."""

load("@rules_python//python:defs.bzl", "py_library")
load(":native.bzl", "native_folder")
load(":package.bzl", "python_folder")

_MANIFEST = "/backend.toml"

def backend_folders():
    """The names of all backends of this package."""
    manifests = native.glob(["*" + _MANIFEST], allow_empty = True)
    return [manifest[:-len(_MANIFEST)] for manifest in manifests]

def backends(name, deps, data = [], test_deps = [], slow_parts = [], most_files = 12):
    """For each backend B the library B, its tests, and what B/native/ holds.

    A backend sees the contract and not another backend: its deps are those here. Of other backends
    it has the manifests, and the check of their own table of a target file, as a target may list
    several.

    Args:
      name: name of a library with all of them.
      deps: what every backend may import.
      data: files that every backend reads.
      test_deps: what only their tests may import.
      slow_parts: test files of backends with tests that are marked `slow`.
      most_files: test files of one process.
    """
    tables = name + "_tables"
    py_library(
        name = tables,
        srcs = native.glob(["*/table.py", "*/__init__.py"], allow_empty = True),
        data = native.glob(["*" + _MANIFEST], allow_empty = True),
        deps = deps,
    )
    for folder in backend_folders():
        modules = []
        if native.glob([folder + "/native/**/*.cc"], allow_empty = True):
            modules = native_folder(folder + "/native")
        python_folder(
            name = folder,
            folder = folder,
            data = modules + data,
            deps = deps + [":" + tables],
            test_deps = test_deps,
            slow_parts = [file for file in slow_parts if file.startswith(folder + "/")],
            most_files = most_files,
        )
    py_library(
        name = name,
        deps = deps + [":" + folder for folder in backend_folders()],
    )
