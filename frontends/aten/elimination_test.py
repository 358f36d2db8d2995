"""Solutions, inverses, factors and determinants equal PyTorch's in float64."""

import pytest
import torch

from frontends.aten.against import agree, results

ATEN = torch.ops.aten
BATCHES = [(), (3,), (2, 1)]


def numbers(*shape):
    return torch.randn(*shape, generator=torch.manual_seed(3), dtype=torch.float64)


def matrices(*batch, size=5):
    """Whose rows must change places."""
    made = numbers(*batch, size, size)
    made[..., 0, 0] = 0
    return made


def same(operator, *args, **kwargs):
    agree(operator, *args, rtol=1e-8, atol=1e-9, **kwargs)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_triangular_systems(batch, left, upper):
    a = matrices(*batch) + 4 * torch.eye(5)
    given = numbers(*batch, 5, 2) if left else numbers(*batch, 2, 5)
    a = a.triu() if upper else a.tril()
    operator = ATEN.linalg_solve_triangular.default
    for unit in (False, True):
        same(operator, a, given, upper=upper, left=left, unitriangular=unit)
    same(operator, a, given[(0,) * len(batch)], upper=upper, left=left)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky(batch, upper):
    a = matrices(*batch)
    a = a @ a.mT + torch.eye(5)
    same(ATEN.linalg_cholesky_ex.default, a, upper=upper)
    same(ATEN.cholesky.default, a, upper)
    half = torch.linalg.cholesky(a, upper=upper)
    same(ATEN.cholesky_solve.default, numbers(*batch, 5, 2), half, upper)


def test_where_cholesky_finds_no_root_is_told():
    a = torch.diag(torch.tensor([1.0, 2.0, -1.0, 3.0], dtype=torch.float64))
    (_, theirs), (_, ours) = results(ATEN.linalg_cholesky_ex.default, a)
    assert ours == theirs == 3


@pytest.mark.parametrize("batch", BATCHES)
def test_systems_and_inverses(batch):
    a = matrices(*batch)
    same(ATEN.linalg_inv_ex.default, a)
    same(ATEN._linalg_solve_ex.default, a, numbers(*batch, 5, 2))
    same(ATEN._linalg_solve_ex.default, a, numbers(*batch, 2, 5), left=False)
    same(ATEN._linalg_solve_ex.default, a, numbers(*batch, 5))


def test_a_singular_matrix_is_told():
    (_, theirs), (_, ours) = results(ATEN.linalg_inv_ex.default, torch.ones(2, 3, 3).double())
    assert list(ours) == theirs.tolist() == [2, 2]


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("size", [1, 2, 6])
def test_determinants(batch, size):
    a = matrices(*batch, size=size)
    same(ATEN._linalg_det.default, a)
    same(ATEN._linalg_slogdet.default, a)
    same(ATEN._linalg_det.default, a * 0)
