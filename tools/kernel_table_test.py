"""Tests that the tables of the documents match the records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ir.errors import KernelError
from search.record.record import Digests, Record
from tools.kernel_table import NOTHING, page, table

DIGESTS = Digests("s", "d", "e", "t", "tool 1")
ONE = Record(
    kernel="one",
    target="chip",
    backend="lang",
    source="kernel.txt",
    command="evolve",
    digests=DIGESTS,
    correct_by="simulator",
    time_kind="simulated",
    shape={"M": 4, "K": 8},
    us=2.0,
    first_us=3.0,
    plain_us=9.0,
    roofline_us=1.999,
)
TWO = replace(ONE, kernel="two", us=1.0, first_us=6.0)
TEXT = "before\n<!-- table: chip -->\nold\n<!-- end -->\nafter\n"


def test_a_row_holds_times_and_ratios_that_are_cut_and_not_rounded():
    assert "| one | M=4 K=8 | 9.00 | 3.00 | 2.00 | 1.50 | 4.50 | 0.99 |" in table([ONE])


def test_the_line_below_gives_geometric_mean_and_median():
    below = table([ONE, TWO]).splitlines()[-1]
    assert "geometric mean 3.00, median 3.75" in below
    assert "Correct by simulator, time simulated" in below


def test_times_of_two_kinds_do_not_stand_in_one_table():
    with pytest.raises(KernelError, match="obtained in different ways"):
        table([ONE, replace(TWO, time_kind="measured")])


def test_only_what_stands_between_the_markers_is_replaced():
    made = page(TEXT, [TWO, ONE], ["chip"])
    assert made.startswith("before\n") and made.endswith("after\n")
    assert "old" not in made and made.index("| one |") < made.index("| two |")
    assert page(made, [ONE, TWO], ["chip"]) == made


def test_a_target_without_records_has_none_yet():
    made = page(TEXT, [], ["chip"])
    assert made == TEXT.replace("old\n", NOTHING)
    assert "| one |" in page(made, [ONE], ["chip"])


def test_a_target_that_is_not_there_is_named():
    with pytest.raises(KernelError, match="no target `chip`"):
        page(TEXT, [ONE], ["other"])


def test_records_of_one_target_obtained_in_two_ways_stand_in_two_tables():
    other = replace(TWO, correct_by="device", time_kind="measured", device="Chip 9", first_us=None)
    made = page(TEXT, [ONE, other], ["chip"])
    assert made.index("| two |") < made.index("measured on Chip 9") < made.index("| one |")
    assert "| two | M=4 K=8 | 9.00 | - | 1.00 | - | 9.00 | 1.99 |" in made
    assert page(made, [ONE, other], ["chip"]) == made


def test_a_backend_that_searched_alone_has_a_table_of_its_own():
    alone = replace(TWO, narrowed=True)
    first, second = page(TEXT, [ONE, alone], ["chip"]).split("\n\n| kernel")
    assert "| one |" in first and "| two |" not in first and " alone." not in first
    assert "| two |" in second and "By `lang` alone. Correct by simulator" in second
