"""The backend of Triton: Python from a nest, compiled for a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, Built, Sizes, Timing
from backends.emit import Templates
from backends.manifest import Manifest
from backends.triton.view import kernel_view
from ir.machine import Machine
from ir.nest import LoopNest


class Triton:
    """Emits one importable file with kernels and launcher."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.templates = Templates(manifest.name)

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """One module: a jit function for each launch, `launch`, and a function of the kernel's
        name."""
        return self.templates.render("kernel.py.j2", **kernel_view(nest, machine))
