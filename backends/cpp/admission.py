"""Admission: the parts of C++ and of `kernel.h` that a kernel's text may use.

It does not check that indices are in bounds of tiles and tensors. Writes next to a tensor are
detected when the kernel runs.
"""

from __future__ import annotations

from backends.shared import admission
from backends.shared.admission import NUMBERS, Rules
from backends.shared.texts import BUILTINS
from backends.shared.words import FUNCTIONS, TYPES

_TYPES = TYPES | {"Product"}
RULES = Rules(
    include='#include "kernel.h"',
    what="numbers, tiles, products and functions",
    starts=("constexpr", "KERNEL", ";", "}"),
    types=NUMBERS | _TYPES,
    members=frozenset("data tensors sizes held left right result stride taken reserve".split()),
    names=frozenset("std Args Block".split()),
    made=("Array", "Args", "Block"),
    directives=r"#pragma omp (simd( reduction\((\+|\*|larger|smaller|max|min|\|\||&&) : \w+\))?"
    r"|parallel num_threads\(least\(args\.threads, count\)\) default\(firstprivate\)"
    r"|for schedule\((static|dynamic)(, \d+)?\))",
    called=BUILTINS
    | _TYPES
    | FUNCTIONS
    | frozenset("float double bool for if while return first_thread size run a b c".split()),
    callable_types=("Array", "Product"),
)


def require_admissible(source: str) -> None:
    """Raises BackendError("build") at the first construct that a kernel may not use."""
    admission.require_admissible(source, RULES)
