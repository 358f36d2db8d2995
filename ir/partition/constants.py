"""Splits off what depends on fixed inputs (parameters) alone, to compute it once before the calls.

before: s[c] = rsqrt(v[c] + 1e-5), y[n, c] = x[n, c] * s[c]     where v is fixed
after:  s[c] = rsqrt(v[c] + 1e-5)                               once, and again if v changes
        y[n, c] = x[n, c] * s[c]                                at each call, where s is an input

Views stay with their readers, because no kernel computes them. Views that cannot be inlined are
copies, so they are constants as well. Equations that depend on no input at all (positions, masks)
stay in the call, as a kernel that computes them reads nothing. If a constant needs them, they are
also computed before the calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ir.intervals import ranged
from ir.partition.channels_last import with_channels_last
from ir.partition.empty import is_empty
from ir.partition.phase_taps import with_taps_of_phases
from ir.partition.phases_in_place import with_phases_in_place
from ir.partition.repeated import once
from ir.partition.rounded_operands import NARROW, with_rounded_operands
from ir.partition.shared_inputs import with_shared_inputs
from ir.partition.views import through_views
from ir.partition.wide_channels import with_wide_channels
from ir.spec import Spec
from ir.verify import facts
from ir.visit import pruned


@dataclass(frozen=True, slots=True)
class Divided:
    """A spec that is split into constants and call."""

    before: Spec  # computes the constants from the fixed inputs; its outputs are inputs of `call`
    call: Spec  # computes the outputs of the whole spec
    aliases: Mapping[str, str]  # by view, in both parts: the tensor whose elements it shows


def divided(
    spec: Spec,
    aliases: Mapping[str, str],
    fixed: Collection[str],
    channels_last: bool = False,
    wide: bool = False,
    rounded: Collection[str] = (),
) -> Divided | None:
    """Splits a literal spec into constants and call; None if it has no constants.

    An output of the spec is always computed in the call. A spec with empty tensors is not split.

    fixed: inputs that stay the same between calls.
    channels_last: whether convolutions read and write channels last
        (`ir/partition/channels_last.py`).
    wide: whether convolutions of few channels read copies with more of them
        (`ir/partition/wide_channels.py`).
    rounded: convolutions whose operands are rounded where they are produced
        (`ir/partition/rounded_operands.py`).
    """
    known = facts(spec).tensors.values()
    if not fixed or any(map(is_empty, known)):
        return None
    there = {e.target for e in spec.equations}
    aliases = {a: b for a, b in aliases.items() if a in there}
    flat = once(through_views(spec, aliases), aliases)
    flat = with_shared_inputs(flat, aliases, fixed)
    given = {t.name for t in flat.inputs} - set(fixed)
    # Filters that are computed from fixed inputs alone are constants as well.
    filters = {*fixed, *(_reading(flat, fixed) - _reading(flat, given))}
    if wide:
        flat = with_wide_channels(flat, filters, rounded)
    if channels_last:
        flat = with_channels_last(flat, aliases, filters)
    if rounded:
        flat, aliases = with_phases_in_place(flat, aliases, filters, rounded, NARROW)
        flat, shown = with_rounded_operands(flat, fixed, rounded)
        flat, aliases = with_taps_of_phases(flat), {**aliases, **shown}
    changing = _reading(flat, given)
    constant = _reading(flat, fixed) - changing
    apart = constant - {t.name for t in flat.outputs} - aliases.keys()
    kept = [e for e in flat.equations if e.target not in apart]
    call = pruned(replace(flat, equations=tuple(kept)))
    wanted = {s for e in call.equations for s in e.sources() if s in apart}
    if not wanted:
        return None
    tensors = ranged(flat).tensors
    made = tuple(replace(tensors[name], place=None) for name in sorted(wanted))
    before = tuple(e for e in flat.equations if e.target not in changing)
    outputs = tuple(replace(t, range=()) for t in made)
    name = f"{spec.name}_constants"
    return Divided(
        _read(pruned(replace(spec, name=name, outputs=outputs, equations=before))),
        _read(replace(call, inputs=(*call.inputs, *made))),
        aliases,
    )


def _read(spec: Spec) -> Spec:
    """Drops the inputs that no equation reads."""
    read = {s for e in spec.equations for s in e.sources()}
    return replace(spec, inputs=tuple(t for t in spec.inputs if t.name in read))


def _reading(spec: Spec, inputs: Collection[str]) -> set[str]:
    """The targets that depend on at least one of the inputs."""
    found = set(inputs)
    before = 0
    # Iterates to a fixed point, because recurrences read later equations.
    while before != (before := len(found)):
        found |= {e.target for e in spec.equations if found & set(e.sources())}
    return found & {e.target for e in spec.equations}
