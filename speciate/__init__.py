"""Kernels for PyTorch modules and specs, evolved for the accelerator that is there.

fast = speciate.evolve(module, (x,), seconds=60)    # searches, and keeps what it finds
fast = speciate.compile(module, (x,))               # uses what was found
fast = speciate.load("folder")                      # what `fast.save("folder")` wrote
"""

from frontends.compiled.module import CompiledModule
from ir.errors import KernelError
from speciate.compiling import compile, load
from speciate.evolving import Evolved, evolve

__all__ = ["CompiledModule", "Evolved", "KernelError", "compile", "evolve", "load"]
