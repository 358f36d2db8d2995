"""Policies are found by name."""

import pytest

from ir.errors import KernelError
from search.policy import POLICIES, policy


def test_every_policy_is_found_by_its_name():
    assert all(policy(name) is made for name, made in POLICIES.items())


def test_an_unknown_policy_is_refused_with_those_that_are():
    with pytest.raises(KernelError, match="no policy `lucky`") as caught:
        policy("lucky")
    assert caught.value.allowed == "evolutionary, greedy"
