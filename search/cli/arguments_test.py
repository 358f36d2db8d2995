"""Command lines: their parsing, and their errors."""

import pytest

from ir.errors import KernelError
from search.cli.arguments import arguments
from search.core.workload import WeightedShape


def read(*words):
    return arguments(words, "chip", "rows")


def test_what_was_not_said_is_not_made_up():
    asked = read()
    assert asked.targets == asked.kernels == ()
    assert (asked.evaluations, asked.seed, asked.promote, asked.dispatch) == (None,) * 4
    assert asked.shapes == asked.allow_torch == ()


def test_everything_can_be_said():
    asked = read(
        "--target=a",
        "--target",
        "b",
        "--target=a",
        "--kernel=k",
        "--shape=M=2048, K=512",
        "--shape=M=1@0.5",
        "--dispatch=2",
        "--held-out=0",
        "--evaluations=7",
        "--seconds=1.5",
        "--policy=greedy",
        "--seed=0",
        "--workers=3",
        "--no-promote",
        "--json",
        "--allow-torch",
        "svd, sort,svd",
    )
    assert asked.allow_torch == ("svd", "sort")
    assert asked.targets == ("a", "b")
    assert asked.shapes == (WeightedShape({"M": 2048, "K": 512}), WeightedShape({"M": 1}, 0.5))
    assert (asked.dispatch, asked.held_out) == (2, 0)
    assert (asked.evaluations, asked.seconds, asked.seed, asked.workers) == (7, 1.5, 0, 3)
    assert asked.promote is False and asked.json is True


@pytest.mark.parametrize(
    "address", ["local", "10.0.0.1:6379", "ray://head.lab:10001", "[fe80::1]:6379"]
)
def test_a_cluster_has_an_address(address):
    assert read(f"--cluster={address}").cluster == address


@pytest.mark.parametrize(
    "word, where",
    [
        ("--evaluations=1e3", "--evaluations"),
        ("--cluster=", "--cluster"),
        ("--cluster=head", "--cluster"),
        ("--cluster=head:0", "--cluster"),
        ("--cluster=head:65536", "--cluster"),
        ("--cluster=http://head:1", "--cluster"),
        ("--evaluations=9999999999999999999", "--evaluations"),
        ("--seconds=nan", "--seconds"),
        ("--seconds=inf", "--seconds"),
        ("--shape=", "--shape"),
        ("--shape=M=3,", "--shape"),
        ("--shape=M=-3", "--shape"),
        ("--shape=M=3@", "--shape"),
        ("--shape=M=3@0", "--shape"),
        ("--shape=M=3@-1", "--shape"),
        ("--shape=M=3@inf", "--shape"),
        ("--shape=M=3@heavy", "--shape"),
        ("--shape=M=3@1@2", "--shape"),
        ("--dispatch=0", "--dispatch"),
        ("--target", "arguments"),
        ("--eval=3", "arguments"),
    ],
)
def test_a_wrong_wording_is_an_error_of_ours_with_its_place(word, where):
    with pytest.raises(KernelError) as fault:
        read(word)
    assert fault.value.where == where
    assert fault.value.allowed or fault.value.hint
