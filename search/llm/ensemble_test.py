"""An ensemble draws its models by their weights."""

import random
from collections import Counter

import pytest

from ir.errors import KernelError
from search.llm.ensemble import Ensemble, ensemble


@pytest.mark.parametrize(
    ("words", "models", "weights"),
    [
        (["a"], ("a",), (1.0,)),
        (["a:2,b:1"], ("a", "b"), (2.0, 1.0)),
        (["a:0.5", " b , c:3"], ("a", "b", "c"), (0.5, 1.0, 3.0)),
        (["org/m:8b"], ("org/m:8b",), (1.0,)),
        (["org/m:8b:2", "m:70b"], ("org/m:8b", "m:70b"), (2.0, 1.0)),
    ],
)
def test_models_are_named_with_weights(words, models, weights):
    assert ensemble(words) == Ensemble(models, weights)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no model is named"),
        ([""], "`` names no model"),
        (["a,,b"], "`` names no model"),
        ([":2"], "`:2` names no model"),
        (["a,b", "a:2"], "`a` is named twice"),
        (["a:0"], "not positive"),
        (["a:-1"], "not positive"),
        (["a:nan"], "not positive"),
        (["a:inf"], "not positive"),
    ],
)
def test_what_names_no_ensemble_is_refused(words, said):
    with pytest.raises(KernelError, match=said) as caught:
        ensemble(words)
    assert caught.value.where == "--model"


def test_models_are_drawn_by_weight_and_by_the_generator():
    found = ensemble(["a:3,b:1"])
    rng = random.Random(0)
    drawn = Counter(found.draw(rng) for _ in range(4000))
    assert 2.6 < drawn["a"] / drawn["b"] < 3.4
    again = [[found.draw(rng) for _ in range(9)] for rng in (random.Random(1), random.Random(1))]
    assert again[0] == again[1]


def test_an_ensemble_has_models_with_weights():
    for models, weights in (((), ()), (("a",), ())):
        with pytest.raises(ValueError, match="each model has a weight"):
            Ensemble(models, weights)
