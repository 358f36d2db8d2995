"""A module's total counts each step, and is no number if a kernel is missing."""

from types import SimpleNamespace

from ir.network import Network, Step
from ir.parse.parse import parse_spec
from search.cli.modules import total


def spec(name):
    return parse_spec(
        f'def {name}(x: f32[4]) -> f32[4]:\n    """s"""\n    y[m] = x[m] + 1.0\n    return y\n'
    )


def outcome(kernel, target, us, first=None, kind="modelled"):
    settings = SimpleNamespace(kernel=kernel, target=target)
    evaluation = SimpleNamespace(us=us, time_kind=kind) if us else None
    return SimpleNamespace(settings=settings, evaluation=evaluation, first_us=first)


NETWORK = Network("model", (), tuple(Step(spec(n), (), ()) for n in "aba"), ())


def test_each_step_counts():
    others = [outcome("a", "other", 50.0, 50.0)]
    found = total(
        "chip", NETWORK, [*others, outcome("a", "chip", 2.0, 3.0), outcome("b", "chip", 1.5, 4.0)]
    )
    assert (found.steps, found.kernels, found.lacking) == (3, 2, ())
    assert (found.best_us, found.first_us, found.time_kind) == (5.5, 10.0, "modelled")
    said = "model on chip: 3 steps by 2 kernels; sum of best times 5.50 µs, modelled"
    assert found.text().startswith(said)


def test_a_kernel_that_is_lacking_is_named():
    found = total("chip", NETWORK, [outcome("a", "chip", 2.0), outcome("b", "chip", None)])
    assert found.best_us is None and found.lacking == ("b",)
    assert (
        found.text() == "model on chip: 3 steps by 2 kernels; no sum of times, without a correct b"
    )


def test_what_pytorch_computes_is_named_and_in_no_sum():
    found = total("chip", NETWORK, [outcome("a", "chip", 2.0), outcome("b", "chip", 1.0)], ["svd"])
    assert found.best_us == 5.0 and found.table()["left_to_torch"] == ["svd"]
    assert found.text().startswith(
        "model on chip: 3 steps by 2 kernels, and svd by PyTorch, in no sum; sum of best times"
    )


def test_times_of_two_kinds_are_told():
    found = total(
        "chip", NETWORK, [outcome("a", "chip", 2.0, kind="measured"), outcome("b", "chip", 1.0)]
    )
    assert found.time_kind == "measured and modelled" and found.first_us is None
