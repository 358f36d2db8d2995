"""Fixtures that the tests of this backend share."""

from dataclasses import replace

import pytest

from backends.cuda.backend import Cuda
from backends.cuda.testing.emulation import machine_of


@pytest.fixture(scope="session", autouse=True)
def patient():
    """Raises the compile timeout: on a busy machine a compilation may take long without a fault."""
    with pytest.MonkeyPatch.context() as patch:
        slow = replace(Cuda.language, seconds=30 * Cuda.language.seconds)
        patch.setattr(Cuda, "language", slow)
        yield


@pytest.fixture(params=["a100", "h200"])
def machine(request):
    """A machine that this backend serves: sm_80 and sm_90."""
    return machine_of(request.param)
