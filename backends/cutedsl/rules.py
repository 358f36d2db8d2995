"""What CuTe DSL requires of tile programs, and which names it reserves."""

import builtins
import keyword
import re
from dataclasses import replace

from backends.cutedsl.admission import CALLED, FUNCTIONS, TYPES
from backends.gpu.rules import Rules
from backends.gpu.source import names

RULES = Rules(
    least_side=16,
    least_depth=32,
    unrolled=8,
    box_aligned=16,
    box_most=256,
    repeated=frozenset(),
    typed=frozenset(),
    typed_but_f32=frozenset(),
    warps=4,
    box_steps=8,
    shares=True,
    clusters=True,
    sums=frozenset({"f32", "i32"}),
)
WORDS = (  # names of Python, of kernel/ and of the emitted texts
    frozenset(keyword.kwlist)
    | frozenset(keyword.softkwlist)
    | frozenset(dir(builtins))
    | CALLED
    | FUNCTIONS
    | TYPES
    | frozenset(
        "cutlass cute cpasync warpgroup columns shared fn a b i p self cls launch_all number".split()
    )
)
# Besides the names that all sources have: the layout of an axis, and the panel or step of a loop.
NAMES = replace(names.NAMES, made=re.compile(rf"{names.NAMES.made.pattern}|.+_axis(_\d+)?|.+_from"))
