"""Names are converted to valid C++."""

from backends.sim import spelling


def test_an_index_named_like_a_keyword_gets_another_name():
    assert spelling.axis("do") == "do_" and spelling.axis("m") == "m"
