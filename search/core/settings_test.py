"""A store keeps settings unchanged."""

import json

from search.core.settings import Settings, settings
from search.core.transferred import Transferred
from search.core.workload import WeightedShape


def test_json_gives_the_settings_back():
    chosen = Settings(
        kernel="softmax",
        spec="def softmax",
        target="chip",
        backends=("tongue", "dialect"),
        sizes={"M": 8, "K": 16},
        checks=({"M": 1, "K": 1}, {"M": 7, "K": 13}),
        seconds=1.5,
        stagnation=40,
        seed=7,
        workload=(WeightedShape({"M": 8, "K": 16}, 2.5), WeightedShape({"M": 9, "K": 16})),
        dispatch=3,
        models=("one", "two:3"),
        max_cost=0.5,
        transferred=(
            Transferred("other", "tongue", "def softmax", "schedule(softmax)", 2.0, "measured"),
        ),
    )
    assert settings(chosen.to_json()) == chosen


def test_what_is_left_to_torch_is_kept_and_was_none_before():
    chosen = Settings("k", "def k", "chip", ("tongue",), {}, left_to_torch=("svd", "sort"))
    text = chosen.to_json()
    assert settings(text) == chosen
    table = json.loads(text)
    del table["left_to_torch"]
    assert settings(json.dumps(table)).left_to_torch == ()


def test_a_run_that_is_older_than_races_had_one_backend():
    chosen = Settings("k", "def k", "chip", ("tongue",), {})
    table = json.loads(chosen.to_json())
    (table["backend"],) = table.pop("backends")
    assert settings(json.dumps(table)) == chosen
