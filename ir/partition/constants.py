"""Constants: what depends on fixed inputs alone (parameters) is computed apart, before the calls.

before: s[c] = rsqrt(v[c] + 1e-5), y[n, c] = x[n, c] * s[c]     where v is fixed
after:  s[c] = rsqrt(v[c] + 1e-5)                               once, and when v has changed
        y[n, c] = x[n, c] * s[c]                                at each call, where s is an input

Views stay with their readers, as they are computed by no kernel; those that cannot be inlined are
copies, and are constants too. What depends on no input at all (positions, masks) stays as well, as a
kernel that computes it reads nothing; it is also computed before where constants are made of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ir.intervals import ranged
from ir.partition.channels_last import with_channels_last
from ir.partition.empty import is_empty
from ir.partition.phase_taps import with_taps_of_phases
from ir.partition.repeated import once
from ir.partition.rounded_operands import with_rounded_operands
from ir.partition.shared_inputs import with_shared_inputs
from ir.partition.views import through_views
from ir.partition.wide_channels import with_wide_channels
from ir.spec import Spec
from ir.verify import facts
from ir.visit import pruned


@dataclass(frozen=True, slots=True)
class Divided:
    """A spec in two parts."""

    before: Spec  # of the fixed inputs alone; its outputs are inputs of `call`
    call: Spec  # the outputs of the whole
    aliases: Mapping[str, str]  # of both: tensors that show another's elements


def divided(
    spec: Spec,
    aliases: Mapping[str, str],
    fixed: Collection[str],
    channels_last: bool = False,
    wide: bool = False,
    rounded: Collection[str] = (),
) -> Divided | None:
    """A literal spec without the equations that depend on some of its inputs alone, and these;
    None where there are none.

    fixed: inputs that stay the same between calls. An output of the spec stays an equation of the
    call. A spec with tensors without elements is left whole. channels_last: whether convolutions read
    and write channels last (`ir/partition/channels_last.py`). wide: whether those of few channels read
    copies with a few more (`ir/partition/wide_channels.py`). rounded: convolutions whose operands are rounded where
    these are computed (`ir/partition/rounded_operands.py`).
    """
    known = facts(spec).tensors.values()
    if not fixed or any(map(is_empty, known)):
        return None
    there = {e.target for e in spec.equations}
    aliases = {a: b for a, b in aliases.items() if a in there}
    flat = once(through_views(spec, aliases), aliases)
    flat = with_shared_inputs(flat, aliases, fixed)
    given = {t.name for t in flat.inputs} - set(fixed)
    # Filters that are computed of fixed inputs alone are constants as well.
    filters = {*fixed, *(_reading(flat, fixed) - _reading(flat, given))}
    if wide:
        flat = with_wide_channels(flat, filters, rounded)
    if channels_last:
        flat = with_channels_last(flat, aliases, filters)
    if rounded:
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
    """The spec without inputs that no equation reads."""
    read = {s for e in spec.equations for s in e.sources()}
    return replace(spec, inputs=tuple(t for t in spec.inputs if t.name in read))


def _reading(spec: Spec, inputs: Collection[str]) -> set[str]:
    """The tensors that are computed of some of the inputs, and perhaps of others."""
    found = set(inputs)
    before = 0
    while before != (before := len(found)):  # recurrences read later equations
        found |= {e.target for e in spec.equations if found & set(e.sources())}
    return found & {e.target for e in spec.equations}
