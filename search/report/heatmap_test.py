"""A heat map has a square for each cell; faster cells are hotter."""

from search.report.heatmap import maps
from search.report.page import ArchiveAxis, ArchiveCell, ArchiveMaps
from search.report.testing import RESULT

LOW_HIGH = ArchiveAxis("a", ("low", "high"))


def test_rows_come_from_the_top_and_columns_from_the_left():
    (made,) = maps(RESULT.archive)
    assert (made.across.name, made.upward.name, made.title) == (
        "on-chip memory used",
        "launches",
        "",
    )
    assert [label for label, _ in made.rows] == ["3 or more", "2", "1"]
    texts = [[square.text for square in squares] for _, squares in made.rows]
    assert texts == [["", "25.0 µs"], ["", ""], ["40.0 µs", "20.0 µs"]]


def test_the_fastest_is_hottest_and_the_slowest_is_not_empty():
    (made,) = maps(RESULT.archive)
    bottom = made.rows[-1][1]
    assert 0 < bottom[0].heat < made.rows[0][1][1].heat < bottom[1].heat == 1
    assert bottom[1].winner and bottom[1].hint == "#5: 20.0 µs, the winner"
    assert made.rows[1][1][0].heat is None


def test_a_single_cell_is_hot():
    (made,) = maps(ArchiveMaps((LOW_HIGH, LOW_HIGH), (ArchiveCell((0, 1), 3.0, 0),)))
    assert made.rows[0][1][0].heat == 1


def test_times_that_hardly_differ_look_alike():
    (made,) = maps(
        ArchiveMaps(
            (LOW_HIGH, LOW_HIGH), (ArchiveCell((0, 1), 3.0, 0), ArchiveCell((1, 1), 3.1, 1))
        )
    )
    assert made.rows[0][1][1].heat > 0.9


def test_one_axis_is_a_single_row():
    (made,) = maps(ArchiveMaps((LOW_HIGH,), (ArchiveCell((1,), 3.0, 0),)))
    assert len(made.rows) == 1 and made.rows[0][1][1].text == "3.00 µs"


def test_a_third_axis_becomes_a_map_for_each_bin_that_is_held():
    third = ArchiveAxis("depth", ("one", "two", "three"))
    cells = (ArchiveCell((0, 0, 0), 3.0, 0), ArchiveCell((1, 1, 2), 2.0, 1))
    archive = ArchiveMaps((LOW_HIGH, LOW_HIGH, third), cells)
    assert [made.title for made in maps(archive)] == ["depth: one", "depth: three"]


def test_an_empty_archive_has_no_map():
    assert maps(ArchiveMaps((LOW_HIGH, LOW_HIGH), ())) == ()
