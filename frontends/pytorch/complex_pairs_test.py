"""Complex tensors are pairs of real ones: each function gives what PyTorch gives."""

import pytest
import torch
from torch import nn

from frontends.pytorch.against import checked
from frontends.pytorch.module import imported
from ir.errors import KernelError


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def pair(x):
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))


def told(z):
    return torch.view_as_real(z)


FUNCTIONS = {
    "product": lambda x, y: told(pair(x) * pair(y)),
    "quotient": lambda x, y: told(pair(x) / (pair(y) + 3.0)),
    "product with a real tensor": lambda x, y: told(pair(x) * y[..., :3]),
    "product with a number": lambda x, y: told(pair(x) * (2.0 - 1.5j)) + told(3.0 * pair(y)),
    "sum with real numbers": lambda x, y: told(pair(x) + y[..., :3] - 2.0),
    "conjugate": lambda x, y: told(pair(x).conj() * pair(y)),
    "polar": lambda x, y: told(torch.polar(x.abs(), y)),
    "made of parts": lambda x, y: told(torch.complex(x, y).reciprocal()),
    "size and angle": lambda x, y: pair(x).abs() + pair(y).angle(),
    "size of zero": lambda x, y: (pair(x) * 0.0).abs(),
    "exponential": lambda x, y: told(pair(x).exp()),
    "parts": lambda x, y: pair(x).real - pair(y).imag,
    "matmul": lambda x, y: told(pair(x) @ pair(y).transpose(-1, -2).conj()),
    "matmul with a real matrix": lambda x, y: told(pair(x) @ (y[..., :3].transpose(-1, -2) + 0j)),
    "einsum": lambda x, y: told(torch.einsum("bic,bjc->bij", pair(x), pair(y))),
    "moves": lambda x, y: told(torch.cat([pair(x), pair(y).flip(1)], 1)[:, 1:].sum(-1)),
    "stacks with a real tensor": lambda x, y: told(torch.stack([pair(x), y[..., :3] + 0j], -1)),
    "choice": lambda x, y: told(torch.where(x[..., :3] > 0, pair(x), pair(y))),
    "casts": lambda x, y: (
        pair(x).to(torch.complex64).to(x.dtype) + (y[..., :3].to(torch.cfloat) * 2j).imag
    ),
    "padded": lambda x, y: told(torch.nn.functional.pad(pair(x), (1, 2), value=3.0)),
    "masked": lambda x, y: told(pair(x).masked_fill(x[..., :3] > 0, 1.0)),
    "fft": lambda x, y: torch.fft.fft(x).real + torch.fft.fft(y, dim=1).imag,
    "fft of two dimensions": lambda x, y: torch.fft.fft2(x, norm="ortho").real,
    "fft and back": lambda x, y: torch.fft.ifft(torch.fft.fft(x) * 2.0).real,
    "rfft and back": lambda x, y: torch.fft.irfft(torch.fft.rfft(x) * 2.0, n=6),
    "rfft of an odd size": lambda x, y: torch.fft.irfft(torch.fft.rfft(y[..., :5]), n=5),
    "rfft of two dimensions": lambda x, y: torch.fft.irfft2(torch.fft.rfft2(x), s=(4, 6)),
    "stft": lambda x, y: torch.stft(
        x.reshape(2, 24), 8, 4, window=torch.hann_window(8), return_complex=True
    ).abs(),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(function):
    checked(function, numbers(2, 4, 6), numbers(2, 4, 6, seed=1))


class Rotary(nn.Module):
    """Rotary embedding as the first Llama has it: by complex numbers that are no parameters."""

    def __init__(self, persistent):
        super().__init__()
        angles = torch.outer(torch.arange(5.0), 1.0 / 100.0 ** (torch.arange(0, 8, 2) / 8))
        rotation = torch.polar(torch.ones_like(angles), angles)
        if persistent is None:
            self.rotation = rotation
        else:
            self.register_buffer("rotation", rotation, persistent=persistent)

    def forward(self, q, k):
        def rotated(x):
            z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(z * self.rotation[None, :, None]).flatten(3).type_as(x)

        return rotated(q), rotated(k)


@pytest.mark.parametrize("persistent", [None, False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rotary_embedding(persistent, dtype):
    checked(
        Rotary(persistent), numbers(2, 5, 3, 8).to(dtype), numbers(2, 5, 1, 8, seed=1).to(dtype)
    )


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: complex weights for the lowest frequencies."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.weight = nn.Parameter(torch.randn(3, 4, 2, 3, dtype=torch.cfloat, generator=generator))

    def forward(self, x):
        found = torch.fft.rfft2(x)
        made = torch.zeros(*x.shape[:1], 4, *found.shape[2:], dtype=found.dtype)
        made[:, :, :2, :3] = torch.einsum("bixy,ioxy->boxy", found[:, :, :2, :3], self.weight)
        return torch.fft.irfft2(made, s=x.shape[-2:])


def test_a_layer_with_complex_weights():
    checked(Spectral(), numbers(2, 3, 6, 7))


def test_what_has_no_rule_is_told():
    with pytest.raises(KernelError, match="no equations for complex tensors"):
        imported(lambda x: torch.view_as_real(pair(x).sqrt()), (numbers(2, 4),))


def test_complex_arguments_and_results_are_refused_with_a_way_out():
    with pytest.raises(KernelError, match="argument `z` is complex") as one:
        imported(lambda z: z.abs(), (torch.complex(numbers(2, 4), numbers(2, 4)),))
    assert "view_as_real" in str(one.value)
    with pytest.raises(KernelError, match="a result is complex") as two:
        imported(lambda x: pair(x) * 2.0, (numbers(2, 4),))
    assert "view_as_real" in str(two.value)
