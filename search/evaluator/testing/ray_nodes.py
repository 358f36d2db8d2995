"""A Ray cluster of several nodes on this machine, for tests. Each node has its own address, core
and processes, and can be killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest import mock

import psutil

STORE = 80 << 20  # bytes of a node's object store, the smallest that Ray accepts
PATIENCE = 60.0  # seconds that processes have to end


class RayNodes:
    """A head without cores, to which drivers connect, and nodes that are lost and replaced.

    head: further arguments of Ray's own test cluster.
    """

    def __init__(self, count: int, **head):
        from ray._common.utils import get_ray_temp_dir
        from ray.cluster_utils import Cluster

        Path(get_ray_temp_dir()).mkdir(exist_ok=True)  # Ray writes to it but does not create it
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Short, because it becomes part of socket names.
        self.folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
        given = {"num_cpus": 0, "temp_dir": str(self.folder), "include_dashboard": False, **head}
        self._started = 1
        # A client's nodes find the distribution by themselves.
        self._variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        # Ray ends its processes with the thread that started them.
        self._starter = ThreadPoolExecutor(1)
        self._nodes: list = []
        head = {"object_store_memory": STORE, "env_vars": self._variables, **given}
        self._ray = Cluster(True, head_node_args=head)
        self.address = self._ray.address
        for _ in range(count):
            self.add()

    def __enter__(self) -> RayNodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, **more) -> str:
        """Adds a node and returns its address. more: arguments of Ray's own test cluster."""
        return self._starter.submit(self._add, **more).result()

    def _add(self, **more) -> str:
        self._started += 1
        where = f"127.0.0.{self._started}"
        given = {
            "env_vars": self._variables,
            "num_cpus": 1,
            "object_store_memory": STORE,
            "node_ip_address": where,
            **more,
        }
        # A thread cannot set the signal handlers of this process.
        with mock.patch("ray._private.utils.set_sigterm_handler"):
            self._nodes.append(self._ray.add_node(**given))
        self._drivers_join_the_head()
        return where

    def alive(self) -> list[str]:
        """The addresses of the nodes, oldest first."""
        return [node.node_ip_address for node in self._nodes]

    def replace(self, where: str) -> Future[None]:
        """Kills the node of an address and starts another. The future is done when both are
        done."""
        return self._starter.submit(self._replace, where)

    def _replace(self, where: str) -> None:
        node = next(n for n in self._nodes if n.node_ip_address == where)
        self._nodes.remove(node)
        self._ray.remove_node(node, allow_graceful=False)
        self._add()

    def close(self) -> None:
        """Ends everything, and checks that no process is left."""
        self._ray.shutdown()
        self._starter.shutdown()
        end = time.monotonic() + PATIENCE
        while left := self._processes():
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            if time.monotonic() > end:
                raise RuntimeError(f"processes of the cluster are left: {left}")
            time.sleep(0.1)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> list[psutil.Process]:
        """Processes whose command line has the cluster's folder."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and str(self.folder) in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def _drivers_join_the_head(self) -> None:
        """Writes the head's address to the file that drivers read. It has the address of the node
        that was started last."""
        file = Path(self._ray.head_node.get_session_dir_path()) / "node_ip_address.json"
        file.write_text(json.dumps({"node_ip_address": self.address.rpartition(":")[0]}))
