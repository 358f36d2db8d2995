"""Rewrites of equations: each gives specs that are equal to one, in the algebra of numbers.

Equal means in real arithmetic; rounding differs, and that is what a search may gain or lose by.
A rewrite offers one spec for every place where it applies, and none where it does not. Its
docstring says what stands before it and after it, and when the two are equal.
"""

from __future__ import annotations

from collections.abc import Callable

from ir.rewrites.exponentials import join_exponentials, part_logarithm
from ir.rewrites.factors import (
    collect_factor,
    distribute_factor,
    hoist_factor,
    hoist_term,
    sink_factor,
)
from ir.rewrites.inlining import (
    inline_pointwise,
    name_common,
    name_part,
    recompute,
    share_equal,
)
from ir.rewrites.maxima import drop_maximum, subtract_maximum
from ir.rewrites.packing import pack_input, reorder_tensor
from ir.rewrites.reductions import (
    join_sums,
    merge_reductions,
    nest_reduction,
    part_sum,
    reassociate,
    split_reduction,
)
from ir.rewrites.strength import (
    in_powers_of_two,
    multiply_reciprocal,
    name_activation,
    reduce_power,
    write_activation,
)
from ir.rewrites.variance import expand_square, merge_deviations, shift_square
from ir.spec import Spec

Rewrite = Callable[[Spec], list[Spec]]

REWRITES: dict[str, Rewrite] = {
    rewrite.__name__: rewrite
    for rewrite in (
        *(inline_pointwise, recompute, share_equal, name_common, name_part),
        *(hoist_factor, hoist_term, sink_factor, collect_factor, distribute_factor),
        *(reassociate, split_reduction, nest_reduction, merge_reductions, part_sum, join_sums),
        *(expand_square, shift_square, merge_deviations, subtract_maximum, drop_maximum),
        *(multiply_reciprocal, reduce_power, in_powers_of_two),
        *(name_activation, write_activation, join_exponentials, part_logarithm),
        *(pack_input, reorder_tensor),
    )
}
