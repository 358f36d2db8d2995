"""Triton's `libdevice` functions on numpy arrays, which its interpreter lacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.language.extra.cuda.libdevice
import triton.language.extra.hip.libdevice
import triton.language.extra.libdevice  # noqa: F401
from triton.runtime import interpreter

from backends.triton.interpret.repairs import erf, handle

_PACKAGE = "triton.language.extra."
_MODULES = ("libdevice", "cuda.libdevice", "hip.libdevice")


def _by_torch(function: Callable) -> Callable:
    return lambda *args: function(*(torch.from_numpy(np.array(a, order="C")) for a in args)).numpy()


FUNCTIONS: dict[str, Callable] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "div_rn": np.divide,
    "erf": erf,
    "erfc": _by_torch(torch.erfc),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fast_dividef": np.divide,
    "fast_expf": np.exp,
    "fast_logf": np.log,
    "fast_tanhf": np.tanh,
    "floor": np.floor,
    "fma": lambda x, y, z: x.astype(np.float64) * y + z,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "isinf": lambda x: np.isinf(x).astype(np.int32),
    "isnan": lambda x: np.isnan(x).astype(np.int32),
    "lgamma": _by_torch(torch.lgamma),
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "nearbyint": np.rint,
    "pow": np.power,
    "rint": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


def install(semantic: Any) -> None:
    """Replaces the device's functions; those not in FUNCTIONS raise NotImplementedError."""
    for module in (sys.modules[_PACKAGE + name] for name in _MODULES):
        for name, member in list(vars(module).items()):
            if callable(member) and getattr(member, "__module__", "") == module.__name__:
                setattr(module, name, _function(name, semantic))


def _function(name: str, semantic: Any) -> Callable:
    def call(*args: Any, _semantic: Any = None) -> tl.tensor:
        if name not in FUNCTIONS:
            raise NotImplementedError(f"libdevice.{name} under the interpreter")
        tensors = [a if isinstance(a, tl.tensor) else semantic.to_tensor(a) for a in args]
        for other in tensors[1:]:
            tensors[0], _ = semantic.broadcast_impl_value(tensors[0], other)
        tensors = [semantic.broadcast_impl_value(t, tensors[0])[0] for t in tensors]
        arrays = np.broadcast_arrays(*(t.handle.data for t in tensors))
        found = np.asarray(FUNCTIONS[name](*arrays))
        dtype = tl.int32 if found.dtype == np.int32 else tensors[0].dtype
        kind = tensors[0].type.with_element_ty(dtype) if tensors[0].type.is_block() else dtype
        return tl.tensor(interpreter.TensorHandle(handle(found, dtype).data, dtype), kind)

    return call
