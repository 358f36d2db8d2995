"""A time is reported with its kind, and with a device only if it was measured there."""

import pytest

from search.core.provenance import here, sentence, time_words

SAID = {"device": "Chip 9", "clocks": "1.98 GHz", "toolchain": "tongue 3 (chip90)"}


@pytest.mark.parametrize(
    "said, kind, words",
    [
        (SAID, "measured", "measured on Chip 9 at 1.98 GHz"),
        ({"device": "Chip 9"}, "measured", "measured on Chip 9"),
        ({}, "measured", "measured on this machine"),
        (SAID, "modelled", "modelled for chip"),
        ({}, "simulated", "simulated for chip"),
    ],
)
def test_a_device_is_named_where_it_was_measured(said, kind, words):
    assert time_words(said, kind, "chip") == words


def test_a_sentence_holds_both_kinds_and_the_toolchain():
    made = sentence(SAID, "interpreter", "modelled", "chip")
    assert made == "correct by interpreter, times modelled for chip, with tongue 3 (chip90)"
    assert sentence({}, "device", "measured", "x") == (
        "correct by device, times measured on this machine"
    )


def test_an_environment_that_says_nothing_is_no_fault():
    assert here({}, "tongue") == {}
    assert here({"backends": {"tongue": SAID}}, "tongue") == SAID
    assert here({"backends": {"tongue": SAID}}, "other") == {}
    assert here({"here": SAID}, "tongue") == SAID  # as in runs before races of backends
