"""The verbs that a machine has: those of its class that its backend renders."""

from __future__ import annotations

from ir.errors import KernelError
from ir.lower.verb_table import VERBS
from ir.machine import NOTED, Machine
from ir.schedule import Decision

# Verbs that only some machine classes have.
OF_CLASS = frozenset(
    """
    associate unroll split_k flatten atomic mirror causal_bound multicast keep rasterize cluster
    threads persistent stream_k cooperative specialize registers roles pingpong warps instruction overlap
    unroll_loop serpentine cache swizzle pad epilogue
    """.split()
)


def available(machine: Machine) -> tuple[str, ...]:
    """The verbs that a machine's class has and its backend renders, in the order of the verb
    table."""
    return tuple(
        verb
        for verb in VERBS
        if machine.renders(verb)
        and (verb not in OF_CLASS or verb in machine.model.verbs)
        and (verb != "copy" or machine.rendered_engines)
    )


def require_of_class(decision: Decision, machine: Machine) -> None:
    """Raises KernelError if machines of this class do not have the verb."""
    model = machine.model
    if decision.verb not in model.verbs:
        raise KernelError(
            f"`{machine.name}` is of class `{model.name}`, which has no `{decision.verb}`",
            place=decision.place,
            allowed=f"beside what every class has: {', '.join(sorted(model.verbs))}",
            hint=f"drop {decision.verb}({decision.subject}, ...)",
        )


def require_rendered(decision: Decision, machine: Machine) -> None:
    """Raises KernelError if the machine's backend does not render the verb."""
    if machine.renders(decision.verb):
        return
    rendered = [v for v in NOTED if machine.renders(v)]
    raise KernelError(
        f"backend `{machine.rendering.backend}` of `{machine.name}` does not render "
        f"`{decision.verb}`, so `{decision}` would change nothing",
        place=decision.place,
        allowed=f"beside what every backend renders: {', '.join(rendered) or 'nothing'}",
        hint=f"drop {decision}",
    )
