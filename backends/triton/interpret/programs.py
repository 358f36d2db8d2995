"""Runs the programs of a launch, many at a time where that cannot change the result.

Programs start together. Where they diverge (`Split`), each group restarts separately. Where one
accesses what another writes, or anything fails, memory is restored and all programs run one after
another in the requested order, so that a race shows and a fault has a location.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError
from triton.runtime.jit import _normalize_ty, mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.backend import BackendError
from backends.gpu.child import fault
from backends.triton.interpret.guard import MemoryGuard, Stray
from backends.triton.interpret.lockstep import Lockstep, Split
from backends.triton.interpret.traffic import AccessLog, Conflict

ELEMENTS = 1 << 20  # of the largest block, over all programs that run together
FIRST = 64  # programs in the first batch, when the size of blocks is unknown


class Programs:
    """Runs the programs of launches.

    order: 0 for numerical order, else the seed of a permutation.
    """

    def __init__(
        self,
        builder: Lockstep,
        semantic: TritonSemantic,
        guard: MemoryGuard,
        addresses: Mapping[int, int],
        order: int,
    ):
        self.builder = builder
        self.semantic = semantic
        self.guard = guard
        self.addresses = addresses
        self.order = order

    @property
    def run(self) -> Callable:
        """The replacement for the interpreter's own launch function."""

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
            if not warmup:
                self._launch(function, args, grid, options)

        return run

    def _launch(self, function: Any, args: tuple, grid: Any, options: Mapping[str, Any]) -> None:
        body = function.rewrite()
        known = {k: v for k, v in options.items() if k in function.arg_names}
        bound = inspect.getcallargs(function.fn, *args, **known)
        grid = tuple(grid(bound) if callable(grid) else grid)
        extents = (*grid, 1, 1)[:3]
        notes = function.fn.__annotations__
        constant = {n for n in bound if _normalize_ty(notes.get(n, "")) == "constexpr"}
        values = {n: v if n in constant else self._argument(v) for n, v in bound.items()}
        self.guard.kernel = function.__name__
        self.builder.set_grid_dim(*extents)
        places = self._places(extents)
        if len(places) == 1 or not self._together(lambda: body(**values), places):
            for place in places:
                self._alone(lambda: body(**values), place, function.__name__)

    def _alone(self, body: Callable[[], Any], place: np.ndarray, name: str) -> None:
        self.builder.set_programs(place[None])
        try:
            body()
        except (Stray, InterpreterError):
            raise
        except Exception as error:  # candidate code: its failure is a result
            where = f"{name}, program {tuple(place.tolist())}"
            raise BackendError("check", f"{where}: {fault(error)}") from None

    def _together(self, body: Callable[[], Any], places: np.ndarray) -> bool:
        """Runs all programs in batches. Returns False, with memory restored, where they must run one by one."""
        kept = self.guard.kept()
        self.guard.traffic = AccessLog()
        try:
            at, count = 0, FIRST
            while at < len(places):
                self._batch(body, places, np.arange(at, min(at + count, len(places))))
                at += count
                count = max(1, ELEMENTS // self.builder.widest)
        except Exception:  # candidate code: run alone, it shows where it fails
            self.guard.put_back(kept)
            return False
        finally:
            self.guard.traffic = None
        return True

    def _batch(self, body: Callable[[], Any], places: np.ndarray, chosen: np.ndarray) -> None:
        """Runs the chosen programs; groups that diverge run one after another."""
        self.builder.set_programs(places[chosen])
        self.guard.traffic.programs = chosen.astype(np.int32)
        kept = self.guard.kept() if len(chosen) > 1 else None
        try:
            body()
        except Split as split:
            if len(split.keys) != len(chosen):
                raise Conflict from None
            keys = split.keys
        else:
            return
        self.guard.put_back(kept)
        for key in np.unique(keys):
            self._batch(body, places, chosen[keys == key])

    def _places(self, extents: tuple[int, ...]) -> np.ndarray:
        places = list(itertools.product(*map(range, extents)))
        if self.order:
            np.random.default_rng(self.order).shuffle(places)
        return np.array(places, np.int32).reshape(-1, 3)

    def _argument(self, given: Any) -> Any:
        """The kernel's form of a launch argument."""
        if isinstance(given, torch.Tensor):
            if given.data_ptr() not in self.addresses and given.numel():
                raise BackendError("check", "a kernel is given a tensor that is not the nest's")
            kind = tl.str_to_ty(mangle_type(given), None)
            address = self.addresses.get(given.data_ptr(), 0)
            return tl.tensor(interpreter.TensorHandle(np.array([address], np.uint64), kind), kind)
        if isinstance(given, TensorDescriptor):
            strides = [self._argument(s) for s in given.strides]
            return self.semantic.make_tensor_descriptor(
                base=self._argument(given.base),
                shape=[self._argument(s) for s in given.shape],
                strides=[*strides[:-1], tl.constexpr(1)],
                block_shape=[tl.constexpr(b) for b in given.block_shape],
                padding_option=given.padding,
            )
        return interpreter._implicit_cvt(given)
