"""Shared kernels: a task's kernels over sizes, each one for all shapes of the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir.network import Network
from ir.partition.unify import unified
from ir.spec import Spec
from ir.workload import Sizes
from search.command.module import Module
from search.workload import Shape


@dataclass(frozen=True, slots=True)
class Shaped:
    """A module's network at one shape. sizes: those at which each kernel, by its name in the first
    network, is what this one has in its place."""

    shape: Mapping[str, int]
    spec: Spec
    network: Network
    sizes: Mapping[str, Sizes]


@dataclass(frozen=True, slots=True)
class Evolved:
    """A kernel to evolve, and the shapes that it is tuned for."""

    spec: Spec
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """The kernels of a module on a target. shaped: the networks that they are for: of all shapes,
    or of the heaviest alone where the others differ from it in more than sizes."""

    kernels: tuple[Evolved, ...]
    shaped: tuple[Shaped, ...]


def shared(module: Module, networks: Sequence[Network]) -> Shared:
    """The kernels of a module. networks: at each of its shapes, the heaviest first."""
    first = networks[0]
    groups = list(zip(*(network.kernels() for network in networks)))
    same = all(len(network.kernels()) == len(first.kernels()) for network in networks)
    found = [unified(group) for group in groups] if same else [None]
    if len(networks) == 1 or None in found:
        alone = {spec.name: {} for spec in first.kernels()}
        shape = module.shape or {}
        return Shared(
            tuple(Evolved(spec, (Shape({}),)) for spec in first.kernels()),
            (Shaped(shape, module.spec, first, alone),),
        )
    kernels = [each for each in found if each is not None]
    shaped = (
        Shaped(one.shape, one.spec, network, {k.spec.name: k.sizes[n] for k in kernels})
        for n, (one, network) in enumerate(zip(module.sized, networks, strict=True))
    )
    weights = [one.weight for one in module.sized]
    return Shared(tuple(Evolved(k.spec, _shapes(k.sizes, weights)) for k in kernels), tuple(shaped))


def _shapes(sizes: Sequence[Sizes], weights: Sequence[float]) -> tuple[Shape, ...]:
    """The shapes, those of equal sizes as one with the sum of their weights."""
    found: dict[tuple[tuple[str, int], ...], Shape] = {}
    for each, weight in zip(sizes, weights, strict=True):
        key = tuple(each.items())
        before = found[key].weight if key in found else 0.0
        found[key] = Shape(each, before + weight)
    return tuple(found.values())
