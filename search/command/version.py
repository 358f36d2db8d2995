"""The version of this project, and of what it runs on."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata

from backends.registry import backend_names

VERSION = "0.1.0"


def versions() -> dict[str, str]:
    """By name: of this project, of Python, and of what is installed of PyTorch and the packages
    that backends are named after."""
    packages = {name: _installed(name) for name in ("torch", *backend_names())}
    return {
        "speciate": VERSION,
        "python": platform.python_version(),
        **{name: version for name, version in packages.items() if version},
    }


def versions_text(found: Mapping[str, str]) -> str:
    """A line for each."""
    return "".join(f"{name} {version}\n" for name, version in found.items())


def _installed(package: str) -> str:
    """Empty where it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
