"""What nothing reads is dropped, what is stored stays."""

from backends.gpu.threads.prune import pruned, reads
from backends.gpu.threads.thread import Each, Element, Guard, Load, Loop, Positions, Store
from backends.gpu.tile import Name, Place, Term
from ir.spec import Number

X, Y, UNUSED, AT = (Name("value", n) for n in ("x", "y", "unused", "at"))
K = Name("origin", "k")


def place(name):
    return Place(Name("pointer", name), (Term(Element(AT, ("k",))),))


def test_a_fragment_that_only_updates_itself_is_dropped():
    block = (
        Positions(AT, None),
        Load(X, place("x"), Number(0.0)),
        Each(UNUSED, Element(X)),
        Each(UNUSED, Element(UNUSED)),
        Store(place("y"), Element(X), ()),
    )
    assert pruned(block, reads(block)) == (block[0], block[1], block[4])


def test_blocks_inside_are_pruned_too():
    inner = (Each(UNUSED, Number(1)), Each(Y, Number(2)))
    block = (
        Loop(K, Number(0), Number(8), 1, inner),
        Guard(Element(K), inner, inner),
        Store(place("y"), Element(Y), ()),
    )
    found = pruned(block, reads(block))
    assert found[0].body == inner[1:] and found[1].body == found[1].others == inner[1:]


def test_conditions_and_bounds_are_read():
    block = (Loop(K, Element(X), Element(Y), 1, ()), Guard(Element(AT), ()))
    assert reads(block) == {X, Y, AT, K}
