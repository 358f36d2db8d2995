"""Parameters are read strictly, and all faults are reported at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.prompt.answer import Refused, edited
from search.prompt.parameters import MOST

FILES = {"a.sched": "schedule(k)\ntile(m, size=32)\ntile(n, size=8)\n", "k.cc": 'asm("$old")\n'}


def answer(*lines, new="tile(m, size=$size)"):
    block = f"<<<<<<< SEARCH a.sched\ntile(m, size=32)\n=======\n{new}\n>>>>>>> REPLACE\n"
    return "\n".join([*lines, block])


def faults(text):
    with pytest.raises(Refused) as caught:
        edited(text, FILES)
    return str(caught.value).split("\n")


def test_parameters_and_their_values():
    text = answer(
        "PARAMETER size in (16, 8, 64)", "Smaller tiles fit.", "PARAMETER $k in [f32, x.y,]"
    )
    found = edited(text.replace("$size)", "$size)\nprecision($k)"), FILES)
    assert found.parameters == {"size": ("16", "8", "64"), "k": ("f32", "x.y")}
    assert found.why == "Smaller tiles fit."
    assert found.files["a.sched"].split("\n")[1:3] == ["tile(m, size=$size)", "precision($k)"]


@pytest.mark.parametrize(
    "line",
    [
        "- PARAMETER size in (4, -2.5e3)",
        "`PARAMETER size in (4, -2.5e3)`",
        "  PARAMETER size in (4, -2.5e3).",
    ],
)
def test_what_models_put_around_a_line_is_no_part_of_it(line):
    assert edited(answer(line), FILES).parameters == {"size": ("4", "-2.5e3")}


def test_an_answer_without_any_is_as_it_was():
    found = edited(answer("Why.", new="tile(m, size=16)"), FILES)
    assert not found.parameters and found.why == "Why."


def test_all_faults_are_said_at_once_each_with_where_what_and_allowed():
    text = answer(
        "PARAMETER size in 16, 32",
        "PARAMETER 9lives in (1, 2)",
        "PARAMETER depth in (2, 2, 'three')",
        "PARAMETER depth in ()",
    )
    said = faults(text + "<<<<<<< SEARCH a.sched\nnowhere\n=======\n>>>>>>> REPLACE\n")
    where = "\n".join(said)
    assert len(said) == 6
    assert "look for stand 0 times" in where
    assert "line 1: `PARAMETER size in 16, 32` names no parameter; needed: `PARAMETER NAME" in where
    assert "line 2: a parameter cannot be named `9lives`; allowed: letters" in where
    assert "line 3: `depth` cannot be `'three'`; allowed: numbers" in where
    assert "line 4: `depth` is named twice" in where and "line 4: `depth` has no values" in where
    assert faults(answer("PARAMETER size in (4, 8, 4)")) == [
        "line 1: `size` has 4 twice; name each value once"
    ]


def test_uses_without_values_and_values_without_uses_are_said_with_what_there_is():
    said = faults(
        answer("PARAMETER size in (16, 32)", "PARAMETER depth in (2, 3)", new="$siez\n$q")
    )
    assert said == [
        "line 2 of the new `a.sched`: `$siez` has no values; allowed: $size, $depth; "
        "did you mean `size`?",
        "line 3 of the new `a.sched`: `$q` has no values; allowed: $size, $depth; name it outside "
        "the blocks: `PARAMETER NAME in (VALUE, VALUE, ...)`, where a value is a number or a word",
        "the parameter `size` is used nowhere; write `$size` in the new lines where its value goes, "
        "or do not name it",
        "the parameter `depth` is used nowhere; write `$depth` in the new lines where its value "
        "goes, or do not name it",
    ]
    assert "allowed: none is named" in faults(answer())[0]


def test_what_a_text_had_before_needs_no_values():
    text = '>>>>>>> FILE k.cc\nasm("$old", $0);\n// $new\n<<<<<<< END\n'
    assert len(faults(text)) == 1
    assert edited(text.replace("$new", "new"), FILES).files


def test_no_more_combinations_than_can_be_looked_through():
    many = ", ".join(str(n) for n in range(MOST // 16 + 1))
    lines = (f"PARAMETER size in ({many})", "PARAMETER n in (0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f)")
    (said,) = faults(answer(*lines, new="$size $n"))
    assert "17 x 16 = 272 combinations; allowed: at most 256" in said


@given(st.text(alphabet="PARAMETER in(),$xy12 \n`'\"-.", max_size=60))
def test_any_line_is_refused_or_gives_values_that_are_used(text):
    try:
        found = edited(answer(text, new="$x $y"), FILES)
    except Refused:
        return
    assert set(found.parameters) == {"x", "y"}
    assert all(values and len(set(values)) == len(values) for values in found.parameters.values())
