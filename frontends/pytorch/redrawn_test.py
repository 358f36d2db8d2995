"""PyTorch with the draws of a spec gives what the spec gives, whatever is drawn between."""

import torch
from torch import nn

from frontends.pytorch.module import imported
from frontends.pytorch.redrawn import _Draws, redrawn
from frontends.pytorch.reference import answer


class Noisy(nn.Module):
    """Draws by functions, by methods, in place, and by modules, of tensors and of none."""

    def __init__(self):
        super().__init__()
        self.drop, self.norm = nn.Dropout(0.4), nn.BatchNorm1d(6)

    def forward(self, x):
        y = self.drop(self.norm(x)) + torch.randn(4, 6, dtype=x.dtype)
        y = torch.nn.functional.dropout(y, 0.2) * torch.bernoulli(torch.sigmoid(x))
        y = y + torch.rand_like(x) + torch.empty_like(x).normal_(1.0, 2.0)
        return y, torch.randint(0, 9, (5,)), torch.randperm(7)


def test_all_draws_are_those_of_the_equations():
    module, x = Noisy().double(), torch.randn(4, 6, dtype=torch.float64)
    found = answer(imported(module, (x,)), module, (x,), seed=3)
    theirs, ran = redrawn(module, (x,), seed=3)
    for a, b in zip(found.result, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.left["norm.running_mean"], ran.norm.running_mean)


def test_another_seed_draws_others():
    module, x = nn.Dropout(0.5), torch.ones(200)
    first, second, again = (redrawn(module, (x,), seed=n)[0] for n in (0, 1, 0))
    assert not torch.equal(first, second) and torch.equal(first, again)


def test_a_drawn_scalar_has_no_axis():
    class Noise(nn.Module):
        def forward(self, x):
            return torch.rand_like(x)

    drawn, _ = redrawn(Noise(), (torch.tensor(2.0, dtype=torch.float64),))
    assert drawn.shape == () and 0 <= drawn < 1


def test_what_draws_nothing_is_pytorchs():
    module, x = nn.Linear(3, 4), torch.randn(2, 3)
    assert torch.equal(redrawn(module, (x,))[0], module(x))


def test_what_drops_nothing_is_pytorchs_even_where_there_is_no_rule():
    """A library's recurrence may drop elements between layers; one that does not draws nothing."""

    def fail(*_):
        raise AssertionError("nothing is drawn")

    x = torch.randn(4, 6)
    with _Draws(3, fail):
        kept, mask = torch.ops.aten.native_dropout(x, 0.0, True)
    torch.testing.assert_close(kept, x)
    assert mask.all()
