"""Settings survive the store."""

from search.settings import Settings, settings
from search.workload import Shape


def test_json_gives_the_settings_back():
    chosen = Settings(
        kernel="softmax",
        spec="def softmax",
        target="chip",
        backend="tongue",
        sizes={"M": 8, "K": 16},
        checks=({"M": 1, "K": 1}, {"M": 7, "K": 13}),
        seconds=1.5,
        stagnation=40,
        seed=7,
        workload=(Shape({"M": 8, "K": 16}, 2.5), Shape({"M": 9, "K": 16})),
        dispatch=3,
    )
    assert settings(chosen.to_json()) == chosen
