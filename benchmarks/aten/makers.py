"""Makers of samples, for operators without samples in PyTorch, and for those that draw random
numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.aten.call import OperatorCall

ATEN = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16)
DTYPES = {"randperm": (torch.int64,), "polar": (torch.float32,)}
MAKERS: dict[str, Callable[[torch.dtype], Iterator[OperatorCall]]] = {}
Args = Iterator[tuple[Any, ...]]


def maker(name: str, overload: str = "default") -> Callable[[Any], Any]:
    """Registers a function that yields the arguments of calls for a dtype."""

    def registered(arguments: Callable[[torch.dtype], Args]) -> Callable[[torch.dtype], Args]:
        operator = getattr(getattr(ATEN, name), overload)

        def made(dtype: torch.dtype) -> Iterator[OperatorCall]:
            named = {a.name for a in operator._schema.arguments if a.kwarg_only}
            for args in arguments(dtype):
                yield OperatorCall(operator, args, {"dtype": dtype} if "dtype" in named else {})

        MAKERS[name] = made
        return arguments

    return registered


def _x(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


@maker("_softmax")
@maker("_log_softmax")
def _soft(d: torch.dtype) -> Args:
    yield _x(d, 5, 10), -1, False
    yield _x(d, 2, 7, 3), 1, False


@maker("_log_softmax_backward_data")
def _log_softmax_backward(d: torch.dtype) -> Args:
    for shape, dim in (((5, 10), -1), ((2, 7, 3), 1)):
        yield _x(d, *shape), _x(d, *shape).log_softmax(dim), dim, d


@maker("_unique2")
def _unique(d: torch.dtype) -> Args:
    yield torch.randint(6, (20,)).to(d), True, True, True
    yield torch.randint(4, (3, 5)).to(d), True, True, True


@maker("_upsample_bicubic2d_aa")
def _bicubic(d: torch.dtype) -> Args:
    yield _x(d, 1, 2, 6, 8), [3, 5], False, None, None
    yield _x(d, 2, 1, 4, 5), [7, 6], True, None, None


@maker("upsample_nearest2d")
def _nearest(d: torch.dtype) -> Args:
    yield _x(d, 1, 2, 4, 5), [8, 10], None, None
    yield _x(d, 2, 1, 6, 7), [3, 4], None, None


@maker("_weight_norm_interface")
def _weight_norm(d: torch.dtype) -> Args:
    yield _x(d, 4, 3, 2), _x(d, 4, 1, 1), 0
    yield _x(d, 5, 6), _x(d, 1, 6), 1


@maker("_weight_norm_interface_backward")
def _weight_norm_backward(d: torch.dtype) -> Args:
    for v, g, dim in _weight_norm(d):
        norms = ATEN._weight_norm_interface(v, g, dim)[1]
        yield torch.randn_like(v), v, g, norms, dim


@maker("convolution")
def _convolution(d: torch.dtype) -> Args:
    x = _x(d, 2, 4, 7, 6)
    yield x, _x(d, 6, 4, 3, 3), _x(d, 6), [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    yield x, _x(d, 4, 3, 3, 2), None, [2, 1], [1, 0], [1, 1], True, [1, 0], 2
    yield x, _x(d, 6, 2, 3, 2), _x(d, 6), [2, 1], [1, 0], [2, 1], False, [0, 0], 2


@maker("diagonal_backward")
def _diagonal_backward(d: torch.dtype) -> Args:
    yield _x(d, 4), [4, 5], 0, 0, 1
    yield _x(d, 3, 5), [5, 3, 6], 1, 0, 2


@maker("embedding_backward")
def _embedding_backward(d: torch.dtype) -> Args:
    yield _x(d, 3, 4, 5), torch.randint(7, (3, 4)), 7, -1, False, False
    yield _x(d, 6, 5), torch.randint(4, (6,)), 4, 1, False, False


@maker("gather_backward")
def _gather_backward(d: torch.dtype) -> Args:
    yield _x(d, 4, 3), _x(d, 4, 5), 1, torch.randint(5, (4, 3)), False
    yield _x(d, 3, 2), _x(d, 6, 2), 0, torch.randint(6, (3, 2)), False


@maker("sigmoid_backward")
@maker("tanh_backward")
def _of_result(d: torch.dtype) -> Args:
    yield _x(d, 5, 5), _x(d, 5, 5).sigmoid()
    yield _x(d, 2, 3, 4), _x(d, 2, 3, 4).sigmoid()


@maker("silu_backward")
@maker("gelu_backward")
def _of_argument(d: torch.dtype) -> Args:
    yield _x(d, 5, 5), _x(d, 5, 5)
    yield _x(d, 2, 3, 4), _x(d, 2, 3, 4)


@maker("threshold_backward")
def _threshold_backward(d: torch.dtype) -> Args:
    yield _x(d, 5, 5), _x(d, 5, 5), 0
    yield _x(d, 2, 3, 4), _x(d, 2, 3, 4), 0.5


@maker("index", "Tensor")
def _index(d: torch.dtype) -> Args:
    yield _x(d, 5, 4), [torch.randint(5, (3,))]
    yield _x(d, 5, 4, 3), [None, torch.randint(4, (2, 3)), torch.randint(3, (2, 3))]


@maker("nll_loss_forward")
def _nll(d: torch.dtype) -> Args:
    yield _x(d, 6, 5).log_softmax(1), torch.randint(5, (6,)), None, 1, -100
    yield _x(d, 6, 5).log_softmax(1), torch.randint(5, (6,)), _x(d, 5).abs(), 2, 1


@maker("nll_loss2d_forward")
def _nll_2d(d: torch.dtype) -> Args:
    yield _x(d, 2, 5, 3, 4).log_softmax(1), torch.randint(5, (2, 3, 4)), None, 1, -100
    yield _x(d, 2, 5, 3, 4).log_softmax(1), torch.randint(5, (2, 3, 4)), _x(d, 5).abs(), 0, 1


@maker("nll_loss_backward")
def _nll_backward(d: torch.dtype) -> Args:
    for args in _nll(d):
        result, total = ATEN.nll_loss_forward(*args)
        yield torch.ones_like(result), *args, total


@maker("nll_loss2d_backward")
def _nll_2d_backward(d: torch.dtype) -> Args:
    for args in _nll_2d(d):
        result, total = ATEN.nll_loss2d_forward(*args)
        yield torch.ones_like(result), *args, total


_ALL = [True, True, True]


@maker("native_batch_norm_backward")
def _batch_norm_backward(d: torch.dtype) -> Args:
    x, weight, mean, var = _x(d, 4, 3, 5), _x(d, 3), _x(d, 3), _x(d, 3).abs()
    for train in (True, False):
        _, saved, scale = ATEN.native_batch_norm(
            x, weight, None, mean.clone(), var.clone(), train, 0.1, 1e-5
        )
        yield _x(d, 4, 3, 5), x, weight, mean, var, saved, scale, train, 1e-5, _ALL


@maker("native_group_norm_backward")
def _group_norm_backward(d: torch.dtype) -> Args:
    for n, c, size, groups in ((2, 4, 6, 2), (1, 6, 5, 3)):
        x, weight = _x(d, n, c, size), _x(d, c)
        _, mean, scale = ATEN.native_group_norm(x, weight, None, n, c, size, groups, 1e-5)
        yield _x(d, n, c, size), x, mean, scale, weight, n, c, size, groups, _ALL


@maker("native_layer_norm_backward")
def _layer_norm_backward(d: torch.dtype) -> Args:
    for shape, of in (((5, 8), [8]), ((2, 3, 4), [3, 4])):
        x, weight, bias = _x(d, *shape), _x(d, *of), _x(d, *of)
        _, mean, scale = ATEN.native_layer_norm(x, of, weight, bias, 1e-5)
        yield _x(d, *shape), x, of, mean, scale, weight, bias, _ALL


@maker("allclose")
def _allclose(d: torch.dtype) -> Args:
    x = _x(d, 4, 5)
    yield x, x.clone()
    yield x, x + 1, 0.5


@maker("polar")
def _polar(d: torch.dtype) -> Args:
    yield _x(d, 4, 5).abs(), _x(d, 4, 5)
    yield _x(d, 30).abs(), _x(d, 30)


@maker("native_dropout")
def _dropout(d: torch.dtype) -> Args:
    yield _x(d, 40, 50), 0.5, True
    yield _x(d, 3000), 0.1, True


@maker("rand")
@maker("randn")
def _drawn(d: torch.dtype) -> Args:
    yield ([40, 50],)
    yield ([3, 7, 100],)


@maker("rand_like")
@maker("randn_like")
def _drawn_like(d: torch.dtype) -> Args:
    yield (_x(d, 40, 50),)
    yield (_x(d, 3, 7, 100),)


@maker("normal", "float_float")
def _normal(d: torch.dtype) -> Args:
    yield 0.0, 1.0, [40, 50]
    yield 2.0, 0.5, [3, 7, 100]


@maker("randperm")
def _permutation(d: torch.dtype) -> Args:
    yield (50,)
    yield (7,)


@maker("multinomial")
def _multinomial(d: torch.dtype) -> Args:
    yield torch.rand(4, 9).to(d), 5, False
    yield torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0]).to(d), 200, True


@maker("to", "dtype")
def _to(d: torch.dtype) -> Args:
    yield 3 * _x(d, 5, 6), torch.int64
    yield _x(d, 5, 6), torch.float32 if d != torch.float32 else torch.float16
