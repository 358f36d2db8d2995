"""The table lines up, and says in each line how correctness and time were obtained."""

from search.command.summary import columns


def test_cells_stand_below_each_other_under_an_underlined_head():
    rows = [("kernel", "best"), ("rows", "5.00 µs"), ("matmul_and_more", "12.3 ms")]
    assert columns(rows, "<>").splitlines() == [
        "kernel              best",
        "---------------  -------",
        "rows             5.00 µs",
        "matmul_and_more  12.3 ms",
    ]


def test_a_table_without_rows_has_its_head():
    assert columns([("kernel", "best")], "<>").splitlines() == ["kernel  best", "------  ----"]
