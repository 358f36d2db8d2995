"""A plan keeps apart what lives together, and takes no more than it must."""

from hypothesis import given
from hypothesis import strategies as st

from backends.program.workspace import ALIGNMENT, Allocation, plan

BLOCKS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 9), st.integers(0, 9)), max_size=12
)


def blocks(drawn):
    return [Allocation(f"b{n}", size, min(a, b), max(a, b)) for n, (size, a, b) in enumerate(drawn)]


@given(BLOCKS)
def test_blocks_that_live_together_lie_apart_and_within(drawn):
    made = blocks(drawn)
    found = plan(made)
    for n, one in enumerate(made):
        low = found.offsets[one.name]
        assert low % ALIGNMENT == 0 and low + one.bytes <= found.bytes
        for other in made[n + 1 :]:
            at = found.offsets[other.name]
            if one.meets(other):
                assert (
                    low + one.bytes <= at
                    or at + other.bytes <= low
                    or not (one.bytes and other.bytes)
                )


@given(BLOCKS)
def test_a_plan_takes_at_least_what_lives_at_once_and_at_most_everything(drawn):
    made = blocks(drawn)
    at_once = [sum(b.bytes for b in made if b.first <= n <= b.last) for n in range(10)]
    everything = sum(-(-b.bytes // ALIGNMENT) * ALIGNMENT for b in made)
    assert max(at_once) <= plan(made).bytes <= everything


def test_a_chain_takes_two_of_its_buffers():
    chain = [Allocation(str(n), 1024, n, n + 1) for n in range(20)]
    assert plan(chain).bytes == 2 * 1024


def test_a_gap_is_filled():
    made = [
        Allocation("long", 512, 0, 9),
        Allocation("early", 2048, 0, 1),
        Allocation("late", 1024, 2, 9),
    ]
    found = plan(made)
    assert found.bytes == 2560 and found.offsets["late"] == found.offsets["early"] == 0


def test_nothing_takes_nothing():
    assert plan([]).bytes == 0
