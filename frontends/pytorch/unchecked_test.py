"""Functions of PyTorch that look at values only to refuse or warn of some become equations."""

import pytest
import torch
import torch.distributions as D
import torch.nn.functional as F

from frontends.pytorch.against import checked

X = torch.randn(6, 5, generator=torch.manual_seed(2))
WIDE = X.exp()


@pytest.mark.parametrize(
    "function",
    [
        lambda m, s: D.Normal(m, s).log_prob(m + 1),
        lambda m, s: D.kl_divergence(D.Normal(m, s), D.Normal(0 * m, s / s)),
        lambda m, s: D.Independent(D.Laplace(m, s), 1).log_prob(m + 1),
        lambda m, s: D.Categorical(logits=m).log_prob(m.argmax(-1)),
        lambda m, s: D.Categorical(logits=m).entropy(),
        lambda m, s: D.Bernoulli(logits=m).log_prob((m > 0).to(m.dtype)),
        lambda m, s: D.MixtureSameFamily(D.Categorical(logits=m), D.Normal(m, s)).log_prob(m[:, 0]),
        lambda m, s: D.Gamma(s, s + 1).log_prob(s),
        lambda m, s: D.MultivariateNormal(m[0], s.mT @ s + torch.diag(s[0])).log_prob(m),
        lambda m, s: F.gaussian_nll_loss(m, m * 2, s, full=True),
    ],
    ids=["normal", "kl", "laplace", "categorical", "entropy", "bernoulli", "mixture", "gamma"]
    + ["rows", "loss"],
)
def test_functions_that_refuse_parameters(function):
    checked(function, X, WIDE)
    assert D.Distribution._validate_args
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(X, X, -WIDE)


@pytest.mark.parametrize(
    "function",
    [
        torch.cov,
        torch.corrcoef,
        lambda x: torch.cov(x[0], correction=0),
        lambda x: torch.cov(x, fweights=torch.tensor([1, 2, 1, 3, 1])),
        lambda x: torch.cov(x, aweights=x[0].exp()),
        lambda x: torch.cov(
            x, correction=2, aweights=x[0].exp(), fweights=torch.tensor([1, 2, 1, 3, 1])
        ),
    ],
    ids=["cov", "corrcoef", "one", "counts", "weights", "both"],
)
def test_covariances(function):
    checked(lambda x: function(x), X)


def test_covariances_of_integers():
    checked(lambda x: torch.cov(x).double(), torch.arange(12).reshape(3, 4) % 5)
