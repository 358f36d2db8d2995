"""Baselines: each kernel as a model developer would write it in PyTorch.

A baseline takes the kernel's inputs in the spec's order and returns its output in their dtype. It
is also the reference: with float64 inputs it evaluates the kernel in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

Function = Callable[..., Tensor]

MODES = ("compile", "max_autotune", "reduce_overhead")
# CUDA graphs copy their inputs before each replay, so max-autotune is raced without them. On the
# device's clock this is never slower. `reduce_overhead` uses graphs.
COMPILE_MODES = {
    "compile": "default",
    "max_autotune": "max-autotune-no-cudagraphs",
    "reduce_overhead": "reduce-overhead",
}


@dataclass(frozen=True, slots=True)
class Form:
    """Another way to write a kernel."""

    call: Function
    # Converts the inputs before timing, for example to a memory format that a model would use
    # throughout.
    prepare: Function | None = None
    modes: tuple[str, ...] = ()  # The modes that it is raced in, besides eager.


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baselines of one kernel."""

    call: Function  # The plain function, raced eager and in all MODES.
    # Whether the rows of the output are independent, and the first dimension of the output is the
    # first of every input that has it. Then a large reference can be computed in pieces.
    rows: bool = True
    forms: Mapping[str, Form] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Returns the names of all baselines: `eager`, the modes, then `<mode>_<form>`."""
        more = (f"{mode}_{name}" for name, f in self.forms.items() for mode in ("eager", *f.modes))
        return ("eager", *MODES, *more)

    def find(self, name: str) -> tuple[Form, str]:
        """Returns the form and the mode (`eager` or one of MODES) of a name. Raises KeyError for an
        unknown name."""
        if name in ("eager", *MODES):
            return Form(self.call), name
        for form, found in self.forms.items():
            mode = name.removesuffix(f"_{form}")
            if mode != name and mode in ("eager", *found.modes):
                return found, mode
        raise KeyError(name)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def attention_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


def attention_by(backend: SDPBackend, causal: bool) -> Function:
    """Returns attention by one of PyTorch's GPU implementations. On a CPU it uses the default
    one."""

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(backend) if q.is_cuda else nullcontext():
            return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]

    return call


def conv1d(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    return F.conv1d(x, w, bias, padding=1)


def conv1d_as_conv2d(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    return F.conv2d(x[:, :, None], w[:, :, None], bias, padding=(0, 1))[:, :, 0]


def conv1d_channels_last(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """x: (B, C, 1, L), channels last. The output has the same format."""
    return F.conv2d(x, w, bias, padding=(0, 1))


def conv2d(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    return F.conv2d(x, w, bias, padding=1)


def conv_phases(x: Tensor, w: Tensor) -> Tensor:
    """Returns the phases of a transposed convolution as channels.

    It rounds f32 operands to tf32, as `matmul_tf32` does. w: (O, 2, 2, C).
    """
    with _tf32_convolutions():
        wide = F.pad(_rounded(x), (0, 1, 0, 1))
        return F.conv2d(wide, _rounded(w).permute(0, 3, 1, 2))


def conv_transposed(x: Tensor, w: Tensor) -> Tensor:
    """Computes `conv_phases` with PyTorch's transposed convolution.

    Its stride is 2, and its kernels are (C, O / 4, 4, 4). The phases are a view.
    """
    with _tf32_convolutions():
        y = F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)[:, :, 1:, 1:]
    b, o, h, v = y.shape
    return y.view(b, o, h // 2, 2, v // 2, 2).permute(0, 3, 5, 1, 2, 4)


def _transposed_kernels(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the inputs of `conv_transposed`: kernels with the elements of the phases."""
    o, _, _, c = w.shape
    parts = (
        _rounded(w).view(2, 2, o // 4, 2, 2, c).flip(3, 4)
    )  # the tap of the next pixel comes first
    return _rounded(x), parts.permute(5, 2, 3, 0, 4, 1).reshape(c, o // 4, 4, 4)


def _transposed_last(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the inputs of `conv_transposed` with channels last."""
    given, kernels = _transposed_kernels(x, w)
    kept = {"memory_format": torch.channels_last}
    return given.contiguous(**kept), kernels.contiguous(**kept)


def cumsum(x: Tensor) -> Tensor:
    return torch.cumsum(x, 1)


def embedding_bag(table: Tensor, idx: Tensor, offsets: Tensor) -> Tensor:
    return F.embedding_bag(idx, table, offsets, mode="sum", include_last_offset=True)


def layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, g.shape, g, b, 1e-5)


def map_id(ids: Tensor, keys: Tensor) -> Tensor:
    pos = torch.bucketize(ids, keys, out_int32=True)
    hit = keys[pos.clamp(max=keys.numel() - 1)]
    return torch.where(hit == ids, pos + 1, 0)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def matmul_tf32(a: Tensor, b: Tensor) -> Tensor:
    """Rounds f32 operands to tf32; without a GPU, in software. It does not round float64
    operands."""
    if not a.is_cuda and a.dtype == torch.float32:
        return _tf32(a) @ _tf32(b).t()
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return a @ b.t()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@contextmanager
def _tf32_convolutions() -> Iterator[None]:
    """Makes convolutions on a GPU round f32 operands to tf32 inside the context."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def _rounded(x: Tensor) -> Tensor:
    """Rounds f32 to tf32 if no GPU does it."""
    return x if x.is_cuda or x.dtype != torch.float32 else _tf32(x)


def _tf32(x: Tensor) -> Tensor:
    """Rounds to the nearest number with 10 fraction bits, ties to even."""
    bits = x.view(torch.int32)
    return (bits + 0xFFF + (bits >> 13 & 1) & ~0x1FFF).view(torch.float32)


def matmul_f8(a: Tensor, b: Tensor, fast: bool = False) -> Tensor:
    """Multiplies 8-bit floats: with scales on a GPU, else with widened operands.

    fast: sums lose bits along K.
    """
    if a.itemsize > 1:
        return a @ b.t()
    if not a.is_cuda:
        return a.bfloat16() @ b.bfloat16().t()
    one = torch.ones((), device=a.device)
    return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)


def matmul_bias_gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(torch.addmm(b, x, w))


def max_pool2d(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 3, stride=2, padding=1)


def pairwise_dot(x: Tensor) -> Tensor:
    return torch.bmm(x, x.transpose(1, 2)).tril(-1)


def pffn(x: Tensor, w1: Tensor, b1: Tensor, g1: Tensor, w2: Tensor, g2: Tensor) -> Tensor:
    h = F.gelu(torch.baddbmm(b1[:, None], x, w1))
    z = torch.bmm(F.rms_norm(h, g1.shape, g1, 1e-6), w2)
    return F.rms_norm(z, g2.shape, g2, 1e-6)


def rmsnorm_matmul(x: Tensor, g: Tensor, w: Tensor) -> Tensor:
    return F.silu(F.rms_norm(x, g.shape, g, 1e-6) @ w)


def softmax(x: Tensor) -> Tensor:
    return F.softmax(x, 1)


def wukong_fm(x: Tensor, y: Tensor) -> Tensor:
    return torch.bmm(x, torch.bmm(x.transpose(1, 2), y))


def wukong_fm_associated(x: Tensor, y: Tensor) -> Tensor:
    """Computes `wukong_fm` in the order with fewer operations if N is smaller than D and K."""
    return torch.bmm(torch.bmm(x, x.transpose(1, 2)), y)


def _last(x: Tensor, w: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns a convolution's inputs with channels last. One-dimensional inputs become images of
    one row."""
    x, w = (t[:, :, None] if t.dim() == 3 else t for t in (x, w))
    kept = {"memory_format": torch.channels_last}
    return x.contiguous(**kept), w.contiguous(**kept), bias


def _by_backend(causal: bool) -> dict[str, Form]:
    """Returns attention by each of PyTorch's fused implementations."""
    named = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
    }
    return {name: Form(attention_by(one, causal)) for name, one in named.items()}


BASELINES: Mapping[str, Baseline] = {
    "attention": Baseline(attention, forms=_by_backend(causal=False)),
    "attention_causal": Baseline(attention_causal, forms=_by_backend(causal=True)),
    "conv1d": Baseline(
        conv1d,
        forms={
            "conv2d": Form(conv1d_as_conv2d, modes=("max_autotune",)),
            "channels_last": Form(conv1d_channels_last, _last),
        },
    ),
    "conv2d": Baseline(conv2d, forms={"channels_last": Form(conv2d, _last)}),
    "conv_phases": Baseline(
        conv_phases,
        forms={
            "transposed": Form(conv_transposed, _transposed_kernels),
            "transposed_last": Form(conv_transposed, _transposed_last),
        },
    ),
    "cumsum": Baseline(cumsum),
    "embedding_bag": Baseline(embedding_bag, rows=False),
    "layer_norm": Baseline(layer_norm),
    "map_id": Baseline(map_id),
    "matmul_f32": Baseline(matmul),
    "matmul_bf16": Baseline(matmul),
    "matmul_bias_gelu": Baseline(matmul_bias_gelu),
    "matmul_f8": Baseline(matmul_f8, forms={"fast": Form(partial(matmul_f8, fast=True))}),
    "matmul_tf32": Baseline(matmul_tf32),
    "max_pool2d": Baseline(max_pool2d),
    "pairwise_dot": Baseline(pairwise_dot),
    "pffn": Baseline(pffn),
    "rmsnorm_matmul": Baseline(rmsnorm_matmul),
    "softmax": Baseline(softmax),
    "wukong_fm": Baseline(
        wukong_fm,
        forms={
            "associated": Form(wukong_fm_associated, modes=("compile", "max_autotune")),
        },
    ),
}
