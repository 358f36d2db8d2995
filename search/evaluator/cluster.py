"""Clusters: the interface of an engine that runs processes on several nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from ir.errors import KernelError
from search.evaluator.slot import Opened

CPU, GPU = "CPU", "GPU"  # resources that every engine knows
# Share of a device for one slot. Several candidates are built and checked while another one is
# timed.
DEVICE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster, with the data for placement."""

    name: str
    host: str
    resources: Mapping[str, float]  # as declared: CPU, GPU and custom ones


class RemoteSlot(Protocol):
    """A slot on a node that the engine chooses."""

    def open(self, benches: Any) -> Future[Opened | KernelError]:
        """The same as `Slot.open`, as soon as there is capacity. benches: from `Cluster.kept`."""

    def evaluate(self, asked: str, texts: Sequence[Any]) -> Future[str]:
        """The same as `Slot.evaluate`. texts: from `Cluster.kept`."""

    def end(self) -> None:
        """Ends the slot and its work."""


class Cluster(Protocol):
    """An engine. `loss` explains the exceptions of its slots and futures."""

    address: str

    def nodes(self) -> Sequence[Node]:
        """The nodes that are alive."""

    def kept(self, data: bytes | str) -> Any:
        """Puts data into the object store, from which each node copies it once."""

    def slot(self, resources: Mapping[str, float], without: Sequence[str]) -> RemoteSlot:
        """A slot that takes these resources. without: names of nodes to avoid."""

    def share(self, pool: str, search: str, wanted: int, capacity: int) -> Future[int]:
        """The same as `Shares.share`, for all searches of the cluster."""

    def leave(self, pool: str, search: str) -> None:
        """The same as `Shares.leave`."""

    def loss(self, error: BaseException) -> str:
        """How a slot was lost, if an exception of it means that; else empty."""

    def close(self) -> None:
        """Disconnects from the cluster. A cluster that was started for this search ends."""


def capacity(nodes: Sequence[Node], resources: Mapping[str, float]) -> int:
    """The number of slots that fit on nodes. resources: of one slot."""
    return sum(
        min(int(n.resources.get(name, 0.0) / each + 1e-6) for name, each in resources.items())
        for n in nodes
    )


def fitting(nodes: Sequence[Node], resources: Mapping[str, float], most: int | None) -> int:
    """The number of slots of a search that uses the nodes alone, at least one. most: the number
    that it asks for."""
    there = capacity(nodes, resources)
    return max(1, there if most is None else min(there, most))


def slot_resources(
    nodes: Sequence[Node], target: str, device: bool, local: bool = False
) -> dict[str, float]:
    """The resources of a slot for a target.

    If nodes declare the target, only these are used. device: whether times are measured on a
    device. Then a node must have the device and declare it; raises KernelError if none does. local:
    the only node is this machine, which declares nothing.
    """
    declaring = [n for n in nodes if n.resources.get(target, 0.0) >= DEVICE_SHARE]
    taken = {CPU: 1.0, target: DEVICE_SHARE} if declaring else {CPU: 1.0}
    if device and all(n.resources.get(GPU) for n in declaring or nodes):
        taken[GPU] = DEVICE_SHARE  # so that the engine assigns one of the node's GPUs
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
    """The declared targets of the nodes, for a person."""
    own = {
        name
        for node in nodes
        for name in node.resources
        if name.isidentifier() and name not in (CPU, GPU, "memory", "object_store_memory")
    }
    words = ", ".join(f"`{name}`" for name in sorted(own)) or "no target"
    return f"what its {len(nodes)} nodes declare: {words}"
