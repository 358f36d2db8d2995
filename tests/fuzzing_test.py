"""Spoiled texts of every kind give documented errors only; `fuzzing_slow_test.py` tries a million."""

from tests.fuzzing import fuzzed, readers

COUNT = 50_000


def test_spoiled_texts_give_documented_errors_only():
    read, faults = fuzzed(COUNT, 0)
    assert not faults, "\n".join(faults[:9])
    with readers() as all_of_them:
        assert set(read) == set(all_of_them), "spoiling leaves some texts readable"


def test_whole_texts_are_read():
    with readers() as all_of_them:
        for one in all_of_them.values():
            for text in one.texts:
                one.read(text)
