"""Loops over K of independent matmuls as one loop."""

from backends.gpu.threads import thread as to
from backends.gpu.threads.joined import joined
from backends.gpu.tile import Name
from ir.spec import Number

FIRST, SECOND = Name("issue", "k", copy=1), Name("issue", "k", copy=2)


def value(name):
    return Name("value", name)


def part(number):
    return Name("part", copy=number)


def tile(name):
    return Name("shared", name)


def loop(step, result, weight, parts, high=64):
    a, b = map(part, parts)
    at = (("k", to.Element(step)),)
    body = (
        to.SharedLoad(a, tile("h"), at=at),
        to.SharedLoad(b, tile(weight), at=at),
        to.Multiply(value(result), a, b),
    )
    return to.Loop(step, Number(0), Number(high), 16, body)


def zero(name):
    return to.Each(value(name), Number(0.0))


def used(name, of):
    return to.Each(value(name), to.Element(value(of)))


A, B = loop(FIRST, "a", "u", (1, 2)), loop(SECOND, "b", "v", (3, 4))


def test_two_loops_are_one_that_loads_what_they_share_once():
    found = joined((zero("a"), A, used("p", "a"), zero("b"), B, used("q", "b")))
    first, second, both, *rest = found
    assert (first, second) == (zero("a"), zero("b"))
    assert rest == [used("p", "a"), used("q", "b")]
    assert isinstance(both, to.Loop) and both.name == FIRST and both.unrolled
    at = (("k", to.Element(FIRST)),)
    assert both.body == (
        to.SharedLoad(part(1), tile("h"), at=at),
        to.SharedLoad(part(2), tile("u"), at=at),
        to.SharedLoad(part(4), tile("v"), at=at),
        to.Multiply(value("a"), part(1), part(2)),
        to.Multiply(value("b"), part(1), part(4)),
    )


def test_a_loop_that_needs_what_is_made_between_stays():
    for between in (
        (used("b", "a"),),  # its result goes on with the first's
        (zero("b"), to.SharedStore(tile("v"), value("a"))),  # its operand is made of the first's
        (zero("b"), to.Barrier()),
    ):
        block = (zero("a"), A, *between, B)
        assert joined(block) == block


def test_loops_of_unlike_lengths_stay():
    block = (zero("a"), A, zero("b"), loop(SECOND, "b", "v", (3, 4), high=128))
    assert joined(block) == block


def test_a_long_loop_is_not_unrolled():
    long = [loop(s, r, w, p, high=4096) for s, r, w, p in ((FIRST, "a", "u", (1, 2)), (SECOND, "b", "v", (3, 4)))]  # fmt: skip
    (_, _, both) = joined((zero("a"), long[0], zero("b"), long[1]))
    assert isinstance(both, to.Loop) and not both.unrolled


def test_loops_inside_of_others_are_joined():
    outer = to.Loop(Name("origin", "t"), Number(0), Number(4), 1, (zero("a"), A, zero("b"), B))
    (found,) = joined((outer,))
    assert isinstance(found, to.Loop) and len(found.body) == 3
