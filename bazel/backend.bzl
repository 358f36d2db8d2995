"""Backends are found by their folders: one with a backend.toml in it is one."""

load("@rules_python//python:defs.bzl", "py_library")
load(":native.bzl", "native_folder")
load(":package.bzl", "python_folder")

_MANIFEST = "/backend.toml"

def backend_folders():
    """The names of all backends of this package."""
    manifests = native.glob(["*" + _MANIFEST], allow_empty = True)
    return [manifest[:-len(_MANIFEST)] for manifest in manifests]

def backends(name, deps, test_deps = []):
    """For each backend B the library B, its tests, and what B/native/ holds.

    A backend sees the contract and not another backend: its deps are those here.

    Args:
      name: name of a library with all of them.
      deps: what every backend may import.
      test_deps: what only their tests may import.
    """
    for folder in backend_folders():
        modules = []
        if native.glob([folder + "/native/**/*.cc"], allow_empty = True):
            modules = native_folder(folder + "/native")
        python_folder(
            name = folder,
            folder = folder,
            data = modules,
            deps = deps,
            test_deps = test_deps,
        )
    py_library(
        name = name,
        deps = deps + [":" + folder for folder in backend_folders()],
    )
