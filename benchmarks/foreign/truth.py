"""The correct results: a problem's model in float64 and in its own formats, only in the judge's
process."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map

from backends.backend import BackendError
from backends.compare import Errors, Form, Reference, compare_output
from backends.gpu.device.tensors import same_bits
from benchmarks.foreign.draws import nudged
from benchmarks.foreign.frames import Other
from benchmarks.foreign.process import Refused
from frontends.dtypes import NAMES
from ir.errors import KernelError
from ir.reference.reference import NARROWEST
from ir.spec import FLOATS

# Factor on the limit of `backends/tolerance.py`, because the layers of a module propagate errors.
TIMES = 2.0
NOISY = 2  # Further runs of plain arithmetic.
# Error of plain arithmetic relative to a result's norm, above which it says nothing.
MOST_PLAIN = 0.1


@dataclass(frozen=True, slots=True)
class Truth:
    """A call with known results."""

    inputs: list[Any]
    exact: list[Any]  # Leaves in float64.
    plain: list[list[Any]]  # Leaves of each run of plain arithmetic.
    structure: Any
    left: list[Any]  # Inputs after the reference's call.
    draw: str

    @staticmethod
    def of(model: torch.nn.Module, inputs: Sequence[Any], draw: str = "") -> Truth:
        """Runs a model. inputs: those of the solution."""
        own = [_clone(v) for v in inputs]
        first, structure = tree_flatten(called(model, own))
        others = [
            tree_flatten(called(model, [_clone(v) for v in nudged(inputs, n)]))[0]
            for n in range(NOISY)
        ]
        exact, _ = tree_flatten(_in_float64(model, inputs))
        return Truth(list(inputs), exact, [first, *others], structure, own, draw)

    @property
    def defined(self) -> bool:
        """Whether at least half of each result of plain arithmetic is finite."""
        floats = [v for v in self.plain[0] if _is_float(v) and v.numel()]
        return all(float(v.isfinite().double().mean()) >= 0.5 for v in floats)

    @property
    def powerless(self) -> bool:
        """Whether plain arithmetic is so inaccurate that a comparison with it would accept
        anything."""
        return any(
            _is_float(e) and e.numel() and _far(p.double(), e) > MOST_PLAIN
            for e, p in zip(self.exact, self.plain[0], strict=True)
        )

    @property
    def bytes(self) -> int:
        """Limit of what a solution may send: its results and the inputs, and a little more."""
        held = [v for v in (*self.plain[0], *self.inputs) if isinstance(v, torch.Tensor)]
        return sum(v.numel() * v.element_size() for v in held) + 4096

    def errors(self, got: Any, where: str) -> Errors:
        """Returns the errors of results. Raises Refused if they are too large."""
        leaves, structure = tree_flatten(got)
        if structure != self.structure:
            raise Refused("form", f"{where}: the results are {structure}, not {self.structure}")
        found = [self._errors(n, leaf, where) for n, leaf in enumerate(leaves)]
        return max(found, key=lambda e: e.rel_err, default=Errors())

    def _errors(self, n: int, got: Any, where: str) -> Errors:
        plain = self.plain[0][n]
        name = f"result {n}" if len(self.exact) > 1 else "the result"
        if not isinstance(plain, torch.Tensor):
            if got != plain or isinstance(got, Other):
                raise Refused("wrong", f"{where}: {name} is {got!r}, not {plain!r}")
            return Errors()
        said = _form(got)
        if said != _form(plain):
            raise Refused("form", f"{where}: {name} is {said}, not {_form(plain)}")
        form = Form(NAMES[plain.dtype], self._precision(), selects=True, times=TIMES)
        known = Reference(
            {},
            {name: _array(self.exact[n])},
            {name: _array(plain)},
            tuple({name: _array(other[n])} for other in self.plain[1:]),
            self.draw,
        )
        try:
            return compare_output(form, {}, name, _array(got), known)
        except BackendError as error:
            draw = f", draw `{self.draw}`" if self.draw else ""
            raise Refused("wrong", f"{where}{draw}: {error.reason}") from None

    def _precision(self) -> str:
        held = [v for v in (*self.inputs, *self.plain[0]) if _is_float(v)]
        used = {NAMES[v.dtype] for v in held} & set(FLOATS)
        return next((d for d in NARROWEST if d in used), "bf16" if used else "f32")

    def require_inputs_kept(self, left: Any, where: str) -> None:
        """Refuses a solution that changed inputs which the reference leaves unchanged."""
        leaves, expected = tree_flatten(left)[0], tree_flatten(self.left)[0]
        if len(leaves) != len(expected):
            raise Refused("forged", f"{where}: its process sends other inputs back")
        for n, (a, b) in enumerate(zip(leaves, expected, strict=True)):
            if isinstance(b, torch.Tensor) and (_form(a) != _form(b) or not same_values(a, b)):
                raise Refused("changes inputs", f"{where}: it changes its input {n}")


def require_certain(model: torch.nn.Module, inputs: Sequence[Any], where: str) -> None:
    """Raises KernelError for a model that draws random numbers, because its results cannot be
    compared."""
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(tree_flatten(called(model, [_clone(v) for v in inputs]))[0])
    for a, b in zip(*found, strict=True):
        if isinstance(a, torch.Tensor) and not same_values(a, b):
            raise KernelError(
                "two calls of the reference on the same inputs differ: it draws random numbers",
                where=where,
                hint="a problem whose results its inputs and weights determine",
            )


def same_values(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype have the same bits."""
    return same_bits(a.detach().cpu(), b.detach().cpu())


def still(first: Any, second: Any) -> list[bool]:
    """Returns for each result of two calls whether it has the same bits."""
    pairs = zip(tree_flatten(first)[0], tree_flatten(second)[0], strict=True)
    return [
        isinstance(a, torch.Tensor) and _form(a) == _form(b) and same_values(a, b) for a, b in pairs
    ]


def called(model: torch.nn.Module, inputs: Sequence[Any]) -> Any:
    """Calls a copy of the model, so that its state does not change."""
    with torch.no_grad():
        return copy.deepcopy(model)(*inputs)


def _in_float64(model: torch.nn.Module, inputs: Sequence[Any]) -> Any:
    wide = copy.deepcopy(model).double()
    for part in wide.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                setattr(part, name, _double(value))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            return wide(*tree_map(_double, [_clone(v) for v in inputs]))
    finally:
        torch.set_default_dtype(before)


def _double(value: Any) -> Any:
    return value.double() if _is_float(value) else value


def _far(plain: torch.Tensor, exact: torch.Tensor) -> float:
    """Returns the norm of an error over that of the result, where both are finite."""
    finite = plain.isfinite() & exact.isfinite()
    plain, exact = plain.where(finite, 0.0), exact.where(finite, 0.0)
    top = float(exact.abs().max())
    if not top:
        return float(plain.abs().max() > 0)
    return float(((plain - exact) / top).norm() / (exact / top).norm())


def _clone(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _form(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}"
    return value.name if isinstance(value, Other) else type(value).__name__


def _array(value: torch.Tensor) -> np.ndarray:
    """Converts values to an array for the comparison. Formats of 16 bits and less become f32."""
    value = value.detach().cpu()
    if value.is_floating_point() and value.element_size() < 4 and value.dtype != torch.float16:
        value = value.float()
    return value.numpy()
