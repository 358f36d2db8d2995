"""Settings survive the store."""

from search.settings import Settings, settings


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
    )
    assert settings(chosen.to_json()) == chosen
