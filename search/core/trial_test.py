"""Templates are filled, their combinations are sorted by preference, and trials are stored as plain
data."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from search.core.candidate import Candidate, Origin, candidate
from search.core.difference import lines
from search.core.trial import Template, Trial, trial

TEMPLATE = Template(
    {"a.sched": "tile(m, size=$size)\ntile(n, size=$size)\n", "k.cc": "f<$kind, $size>($other)"},
    {"size": ("16", "8"), "kind": ("f32", "bf16", "f16")},
    "Why not?",
)


def test_a_value_takes_the_place_of_each_use_of_its_parameter_and_no_more():
    found = TEMPLATE.filled({"size": "8", "kind": "f32"})
    assert found["a.sched"] == "tile(m, size=8)\ntile(n, size=8)\n"
    assert found["k.cc"] == "f<f32, 8>($other)"


def test_the_first_values_are_preferred():
    combinations = TEMPLATE.combinations()
    assert len(combinations) == TEMPLATE.count == 6
    assert combinations[0] == {"size": "16", "kind": "f32"}
    assert [tuple(c.values()) for c in combinations[1:3]] == [("16", "bf16"), ("8", "f32")]
    assert combinations[-1] == {"size": "8", "kind": "f16"}


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
values = st.lists(
    st.from_regex(r"[0-9]{1,3}|[a-z]{1,4}", fullmatch=True), min_size=1, max_size=4, unique=True
)


@given(st.dictionaries(names, values, max_size=3), st.text(max_size=30))
def test_each_combination_comes_once_and_fills_every_use(parameters, text):
    uses = " ".join(f"<${name}>" for name in parameters)
    template = Template({"f": uses}, {n: tuple(v) for n, v in parameters.items()}, text)
    filled = [template.filled(c)["f"] for c in template.combinations()]
    assert len(set(filled)) == len(filled) == template.count
    assert not any("$" in one for one in filled)
    assert filled[0] == " ".join(f"<{v[0]}>" for v in parameters.values())
    for each in (Trial(3, template.combinations()[0], template), Trial(3, {})):
        assert trial(json.loads(json.dumps(each.table()))) == each


def test_a_candidate_says_which_combination_of_which_answer_it_is():
    made = Trial(7, {"size": "8"}, TEMPLATE)
    plain = Candidate("v", "schedule(k)\n", "t", "b", "old", Origin("universal"))
    one = replace(plain, source="new", origin=Origin("universal", (), "Because", trial=made))
    table = json.loads(json.dumps(one.table()))
    assert candidate(table).origin == one.origin and one.key == candidate(table).key
    assert "trial" not in plain.table()
    assert lines(plain, one)[-1] == "with size=8, parameters of answer 7"
