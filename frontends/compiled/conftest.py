"""What the tests of compiled modules share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def no_gradients():
    """Kernels compute none, and parameters require them."""
    with torch.no_grad():
        yield
