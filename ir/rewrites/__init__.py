"""Algebraic rewrites: each takes a spec and returns equal specs.

Equal means equal in real arithmetic. Rounding differs, so a rewrite can gain or lose accuracy. A
rewrite returns one spec for each place where it applies. Its docstring shows the equations before
and after, and says when the two are equal.
"""

from __future__ import annotations

from collections.abc import Callable

from ir.rewrites.exponentials import join_exponentials, split_logarithm
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
    name_subexpression,
    recompute,
    share_equal,
)
from ir.rewrites.maxima import drop_maximum, subtract_maximum
from ir.rewrites.packing import pack_input, reorder_tensor
from ir.rewrites.reductions import (
    join_sums,
    merge_reductions,
    nest_reduction,
    reassociate,
    split_reduction,
    split_sum,
)
from ir.rewrites.strength import (
    expand_activation,
    in_powers_of_two,
    multiply_reciprocal,
    name_activation,
    reduce_power,
)
from ir.rewrites.variance import expand_square, merge_deviations, shift_square
from ir.spec import Spec

Rewrite = Callable[[Spec], list[Spec]]

REWRITES: dict[str, Rewrite] = {
    rewrite.__name__: rewrite
    for rewrite in (
        *(inline_pointwise, recompute, share_equal, name_common, name_subexpression),
        *(hoist_factor, hoist_term, sink_factor, collect_factor, distribute_factor),
        *(reassociate, split_reduction, nest_reduction, merge_reductions, split_sum, join_sums),
        *(expand_square, shift_square, merge_deviations, subtract_maximum, drop_maximum),
        *(multiply_reciprocal, reduce_power, in_powers_of_two),
        *(name_activation, expand_activation, join_exponentials, split_logarithm),
        *(pack_input, reorder_tensor),
    )
}
