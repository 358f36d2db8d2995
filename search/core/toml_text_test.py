import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.core.toml_text import toml_text

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_SCALAR = _TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
_FLAT = st.dictionaries(_TEXT, _SCALAR | st.lists(_SCALAR), max_size=4)
_TABLE = st.dictionaries(
    _TEXT, _SCALAR | st.lists(_SCALAR) | _FLAT | st.lists(_FLAT, min_size=1, max_size=3), max_size=5
)


@given(_TABLE)
def test_what_is_written_reads_back_equal(table):
    assert tomllib.loads(toml_text(table)) == table


def test_a_long_list_has_one_entry_a_line():
    text = toml_text({"lineage": ["x" * 60, "y" * 60]})
    assert text.splitlines()[1:3] == [f'    "{"x" * 60}",', f'    "{"y" * 60}",']


def test_none_is_left_out():
    assert toml_text({"a": None, "b": 1, "c": {"d": None}}) == "b = 1\n\n[c]\n"


def test_nested_tables_of_a_section_stay_on_one_line():
    text = toml_text({"time": {"shape": {"M": 8, "K": 4}}})
    assert text == "[time]\nshape = { M = 8, K = 4 }\n"


def test_a_lone_surrogate_is_replaced():
    assert tomllib.loads(toml_text({"a": "x\udc80"})) == {"a": "x?"}


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="no TOML for object"):
        toml_text({"a": object()})
