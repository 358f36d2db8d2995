"""Ray as the engine of a cluster: it places slots, moves data and notices losses."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import ray
from ray import exceptions
from ray._private import worker
from ray.actor import ActorHandle

from ir.errors import KernelError
from search.evaluator.cluster import CPU, GPU, Node
from search.evaluator.shares import Shares
from search.evaluator.slot import Opened, Slot

LOCAL = "local"
CLIENT = "ray://"
NAMESPACE = "speciate"
STORE = 200 << 20  # bytes of the object store of a cluster that is started here
ANSWER = 10.0  # seconds to wait for a port
# Environment of Ray: no hints on stderr, no usage reports.
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_LOST = (exceptions.RayActorError, exceptions.NodeDiedError, exceptions.ObjectLostError)


class _Actor(Slot):
    """A slot as a Ray actor."""

    def open_here(self, benches: bytes) -> Opened | KernelError:
        """The same as `Slot.open`, on the actor's node."""
        host = f"{platform.node()} {ray.util.get_node_ip_address()}"
        return self.open(ray.get_runtime_context().get_node_id(), host, benches)


class _RaySlot:
    """See `RemoteSlot`."""

    def __init__(self, actor: ActorHandle):
        self._actor = actor

    def open(self, benches: Any) -> Future[Opened | KernelError]:
        return self._actor.open_here.remote(benches).future()

    def evaluate(self, asked: str, texts: Sequence[Any]) -> Future[str]:
        return self._actor.evaluate.remote(asked, *texts).future()

    def end(self) -> None:
        ray.kill(self._actor)


class RayCluster:
    """See `Cluster`."""

    def __init__(self, address: str):
        self.address = address
        self._shares = (
            ray.remote(Shares)
            .options(
                name="shares",
                namespace=NAMESPACE,
                lifetime="detached",  # later searches use it too
                get_if_exists=True,
                num_cpus=0,
                max_restarts=-1,
            )
            .remote()
        )

    def nodes(self) -> Sequence[Node]:
        """The nodes that are alive."""
        return [
            Node(n["NodeID"], n["NodeManagerHostname"], n["Resources"])
            for n in ray.nodes()
            if n["Alive"]
        ]

    def kept(self, data: bytes | str) -> Any:
        """A reference. Ray replaces it by the data when it is an argument."""
        return ray.put(data)

    def slot(self, resources: Mapping[str, float], without: Sequence[str]) -> _RaySlot:
        """An actor, spread over the nodes with free capacity."""
        own = {name: amount for name, amount in resources.items() if name not in (CPU, GPU)}
        options: dict[str, Any] = {
            "num_cpus": resources.get(CPU, 0),
            "num_gpus": resources.get(GPU, 0),
            "resources": own,
            "scheduling_strategy": "SPREAD",
            "max_restarts": 0,  # a lost slot is replaced by a new one
        }
        if without:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(without)})"}
        return _RaySlot(ray.remote(_Actor).options(**options).remote())

    def share(self, pool: str, search: str, wanted: int, capacity: int) -> Future[int]:
        """The share, from a named actor that all searches use."""
        return self._shares.share.remote(pool, search, wanted, capacity).future()

    def leave(self, pool: str, search: str) -> None:
        """Informs that actor without waiting."""
        self._shares.leave.remote(pool, search)

    def loss(self, error: BaseException) -> str:
        """How a slot was lost: the last line of Ray's message."""
        if isinstance(error, exceptions.ActorUnavailableError):
            return "its connection broke"
        if not isinstance(error, _LOST):
            return ""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return lines[-1] if lines else type(error).__name__

    def close(self) -> None:
        """Disconnects from the cluster."""
        ray.shutdown()


def connected(address: str, workers: int | None) -> RayCluster:
    """The cluster at an address. Raises KernelError if there is none.

    address: `local` starts a cluster on this machine. workers: its number of cores (None: all).
    """
    if ray.is_initialized():
        raise KernelError(
            "this process is in a Ray cluster already",
            where="--cluster",
            hint="call ray.shutdown() first, or search in a process of its own",
        )
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    # Ray prints events of nodes on stdout, which is for results. A search reports losses itself.
    worker.print_to_stdstream = lambda data, ignore_prefix: None
    common: dict[str, Any] = dict(namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    if address == LOCAL:
        ray.init(
            address="local",  # a new one, even if this machine is a node of another cluster
            num_cpus=workers or len(os.sched_getaffinity(0)),
            object_store_memory=STORE,
            include_dashboard=False,
            **common,
        )
        return RayCluster(address)
    _require_answer(address)
    try:
        ray.init(address=address, **common)
    except (ConnectionError, RuntimeError, ValueError, exceptions.RayError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise KernelError(
            f"the cluster at `{address}` cannot be used: {first}",
            where="--cluster",
            hint="its Ray and its Python have the versions of this machine's; a machine that is no "
            "node of it says ray://HOST:10001",
        ) from error
    return RayCluster(address)


def _require_answer(address: str) -> None:
    """Checks the port first, because Ray retries for minutes."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
    except OSError as error:
        raise KernelError(
            f"no cluster answers at `{address}`: {error}",
            where="--cluster",
            hint="`ray start --head` starts one; its port is 6379, and 10001 for ray://",
        ) from error
