"""Windows: loads whose boxes overlap in rows share one."""

import pytest

from backends.gpu import tile as of
from backends.gpu.threads.windows import Window, widened, windows
from backends.gpu.tile import Check, Descriptor, Name, Place, Spread
from ir.spec import Apply, Index, Number, Size

AXES = ("", "p", "q", "c")
P = Index("p")
POSITIONS = Spread(Name("positions", "p"), (True, False))
ROWS, COLUMNS = (Spread(Name("mask", i), (i == "p", i == "q")) for i in "pq")


def load(number, shift, extent=8, tensor="x", axis="p"):
    """A load of so many rows that begins some rows later."""
    begins = Apply("sub", (P, Number(-shift))) if shift < 0 else Apply("add", (P, Number(shift)))
    at = (Number(0), begins if shift else P, Index("q"), Number(0))
    box = of.Box(Name("descriptor", tensor, copy=number), AXES, at, (), ())
    return Name("value", tensor, copy=number), box, axis, extent


def descriptors(loads, steps=(1, 1, 1, 1)):
    return {
        box.descriptor: Descriptor(
            box.descriptor, Name("flag"), name.stem, (), (), (), steps, Number(1)
        )
        for name, box, _, _ in loads
    }


def test_the_load_that_begins_first_has_the_rows_of_all():
    loads = [load(0, 1), load(1, -1), load(2, 0)]
    found = windows(loads, descriptors(loads))
    home = Name("value", "x", copy=1)
    rows = {name.copy: window.rows for name, window in found.items()}
    assert rows == {0: 2, 1: 0, 2: 1}
    assert set(found.values()) == {Window(home, n, 2) for n in range(3)}


@pytest.mark.parametrize(
    "loads",
    [
        [load(0, 0)],  # alone
        [load(0, 0, extent=1), load(1, 1, extent=1)],  # rows that no two have
        [load(0, 0), load(1, 9)],
        [load(0, 0), load(1, 1, tensor="w")],
        [load(0, 0), load(1, 0)],  # which of two is a part would not be told by rows
        [load(0, 0, axis="k"), load(1, 1, axis="k")],  # no dimension of the tensor
    ],
)
def test_others_have_boxes_of_their_own(loads):
    assert windows(loads, descriptors(loads)) == {}


def test_rows_with_a_step_between_them_are_no_window():
    loads = [load(0, 0), load(1, 1)]
    assert windows(loads, descriptors(loads, (1, 2, 1, 1))) == {}


def test_threads_that_load_more_rows_end_with_the_tensor():
    inside = (
        Check(Apply("add", (POSITIONS, Number(-1)))),
        Check(Apply("add", (POSITIONS, Number(-1))), below=Size("H")),
    )
    place = Place(Name("pointer", "x"), (), (ROWS, COLUMNS, *inside))
    made = widened(of.Load(Name("value", "x"), place, Number(0)), "p", Size("H"))
    assert made.place.mask == (COLUMNS, *inside)


def test_where_only_the_grid_ends_them_the_tensor_does():
    place = Place(Name("pointer", "x"), (), (ROWS, COLUMNS))
    made = widened(of.Load(Name("value", "x"), place, Number(0)), "p", Size("H"))
    assert made.place.mask == (COLUMNS, Check(POSITIONS, below=Size("H")))
