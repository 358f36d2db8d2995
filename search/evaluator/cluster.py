"""Clusters: what a search needs of an engine that runs processes on several nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from ir.errors import KernelError
from search.evaluator.slot import Opened

CPU, GPU = "CPU", "GPU"  # resources that every engine counts
# Of a device, for one slot: several candidates are built and checked beside the one that is timed.
DEVICE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster, as far as placing needs to know it."""

    name: str
    host: str
    resources: Mapping[str, float]  # as declared: CPU, GPU and its own


class RemoteSlot(Protocol):
    """A slot on some node, which the engine chooses."""

    def open(self, benches: Any) -> Future[Opened | KernelError]:
        """As `Slot.open`, once there is room for it. benches: of `Cluster.kept`."""

    def evaluate(self, asked: str, texts: Sequence[Any]) -> Future[str]:
        """As `Slot.evaluate`. texts: of `Cluster.kept`."""

    def end(self) -> None:
        """Ends it, and what it does."""


class Cluster(Protocol):
    """An engine; its slots and futures raise what `loss` explains."""

    address: str

    def nodes(self) -> Sequence[Node]:
        """Those that are alive."""

    def kept(self, data: bytes | str) -> Any:
        """Puts data into the object store, from where each node takes it once."""

    def slot(self, resources: Mapping[str, float], without: Sequence[str]) -> RemoteSlot:
        """A slot that takes these resources. without: names of nodes that are not to be used."""

    def share(self, pool: str, search: str, wanted: int, capacity: int) -> Future[int]:
        """As `Shares.share`, for all searches of the cluster."""

    def leave(self, pool: str, search: str) -> None:
        """As `Shares.leave`."""

    def loss(self, error: BaseException) -> str:
        """How a slot was lost, where that is what an error of it says; else empty."""

    def close(self) -> None:
        """Lets go of the cluster; one that was started for this search ends."""


def capacity(nodes: Sequence[Node], resources: Mapping[str, float]) -> int:
    """How many slots fit on nodes. resources: what each takes."""
    return sum(
        min(int(n.resources.get(name, 0.0) / each + 1e-6) for name, each in resources.items())
        for n in nodes
    )


def fitting(nodes: Sequence[Node], resources: Mapping[str, float], most: int | None) -> int:
    """How many slots a search has on nodes that nobody else uses, at least one. most: it asks for."""
    there = capacity(nodes, resources)
    return max(1, there if most is None else min(there, most))


def slot_resources(
    nodes: Sequence[Node], target: str, device: bool, local: bool = False
) -> dict[str, float]:
    """What a slot for a target takes of its node.

    Where nodes declare the target, only they are used. device: whether times are measured on a
    device that a node must have, and so declare; KernelError where none does.  local: the one
    node is this machine, which declares nothing.
    """
    declaring = [n for n in nodes if n.resources.get(target, 0.0) >= DEVICE_SHARE]
    taken = {CPU: 1.0, target: DEVICE_SHARE} if declaring else {CPU: 1.0}
    if device and all(n.resources.get(GPU) for n in declaring or nodes):
        taken[GPU] = DEVICE_SHARE  # so that the engine says which of a node's GPUs
    if declaring or local or not device:
        return taken
    raise KernelError(
        f"no node of the cluster declares `{target}`",
        where="--cluster",
        allowed=_declared(nodes),
        hint="start a node that has the device, with: ray start --address=HOST:PORT "
        f"""--resources='{{"{target}": 1}}'. A node without it may declare it too, and then """
        "interprets or emulates kernels and models times",
    )


def _declared(nodes: Sequence[Node]) -> str:
    """What the nodes declare, for a person."""
    own = {
        name
        for node in nodes
        for name in node.resources
        if name.isidentifier() and name not in (CPU, GPU, "memory", "object_store_memory")
    }
    words = ", ".join(f"`{name}`" for name in sorted(own)) or "no target"
    return f"what its {len(nodes)} nodes declare: {words}"
