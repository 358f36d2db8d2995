"""The backend of the local CPU: C++ from a nest, built by g++, run and timed on this machine."""

from __future__ import annotations

import re
from pathlib import Path

from backends.cpp.admission import require_admissible
from backends.cpp.interface import interface
from backends.cpp.matmul import Statements
from backends.shared.compiler import Compiler
from backends.shared.host import PRELUDE, Host
from backends.shared.names import Names
from backends.shared.words import RESERVED
from ir.machine import Machine

# No -ffast-math, so that NaN, infinities and the order of sums are as in the source.
FLAGS = (
    *("-std=c++20", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-fwrapv"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
    *("-mprefer-vector-width=512", "-Wall", "-Wno-unused", "-Wno-unknown-pragmas"),
)


class Cpp(Host):
    """Emits C++ with OpenMP. Correctness and times come from runs on all cores of this machine."""

    names = Names(
        RESERVED | {"product_blocks"},
        re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT|SIZE|EXIT|RAND|MB)\w*|W[A-Z]+|.*_"),
        re.compile(r"_.*|.*__.*|.*_|char8|char16|char32|wchar|least_of|most_of|product_blocks"),
        ("t", "g", "p", "i", "at", "n", "tiles", "low", "high", "tensor"),
        function="_launch",
    )
    statements = Statements
    compiler = Compiler("g++", FLAGS)
    include = (Path(__file__).parent, PRELUDE)
    header = "kernel.h"
    admit = staticmethod(require_admissible)

    def interface(self, machine: Machine) -> str:
        """The types, functions and rules for a source."""
        return interface()
