"""The archive keeps the fittest candidate of each cell, and iterates in the order of the cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.core.archive import Added, Archive, Elite
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation


def elite(cell, fitness, name="x"):
    candidate = Candidate("spec", name, "chip", "tongue")
    return Elite(cell, candidate, Evaluation(1 / fitness, "modelled", "emulator"), fitness)


ELITES = st.builds(
    elite,
    st.tuples(st.integers(0, 2), st.integers(0, 1)),
    st.sampled_from([1.0, 2.0, 3.0]),
    st.text(max_size=2),
)


def test_adding_tells_what_it_did():
    archive = Archive((2, 2))
    assert archive.add(elite((0, 1), 1.0)) is Added.NEW
    assert archive.add(elite((0, 1), 2.0)) is Added.BETTER
    assert archive.add(elite((0, 1), 1.5)) is Added.REFUSED
    assert archive[0, 1].fitness == 2.0


def test_who_came_first_stays():
    archive = Archive((1,))
    archive.add(elite((0,), 1.0, "first"))
    assert archive.add(elite((0,), 1.0, "second")) is Added.REFUSED
    assert archive[0,].candidate.schedule == "first"


@given(st.lists(ELITES))
def test_every_cell_holds_the_fittest_that_came(elites):
    archive = Archive((3, 2))
    for e in elites:
        archive.add(e)
    for cell in {e.cell for e in elites}:
        assert archive[cell].fitness == max(e.fitness for e in elites if e.cell == cell)
    assert len(archive) == len({e.cell for e in elites})
    assert archive.coverage() == len(archive) / 6


@given(st.lists(ELITES), st.randoms(use_true_random=False))
def test_order_does_not_depend_on_the_order_of_adding(elites, rng):
    shuffled = rng.sample(elites, len(elites))
    archives = []
    for batch in (elites, shuffled):
        archives.append(Archive((3, 2)))
        for e in batch:
            archives[-1].add(e)
    one, two = ([(e.cell, e.fitness) for e in a] for a in archives)
    assert one == two == sorted(one)


def test_the_best_is_the_fittest_of_all():
    archive = Archive((2,))
    assert archive.best() is None
    for e in (elite((1,), 3.0), elite((0,), 2.0)):
        archive.add(e)
    assert archive.best().cell == (1,)


@pytest.mark.parametrize("cell", [(2,), (-1,), (0, 0), ()])
def test_a_cell_outside_the_grid_is_our_own_fault(cell):
    with pytest.raises(AssertionError, match="outside a grid"):
        Archive((2,)).add(elite(cell, 1.0))
