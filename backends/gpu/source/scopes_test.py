"""Scopes: a fragment is declared in the innermost block that has all its uses."""

from __future__ import annotations

from backends.gpu.layout.layout import Layout
from backends.gpu.source.scopes import Declare, Given, scoped
from backends.gpu.threads.testing.samples import ONE, launch
from backends.gpu.threads.thread import Axis, Each, Element, Fragment, Guard, Loop
from backends.gpu.tile import Name
from ir.spec import Number, Size

A, B, N = Name("value", "a"), Name("value", "b"), Name("origin", "n")
ZERO, ONE_NUMBER = Number(0), Number(1)


def made(*body, resident=0, once=()):
    from dataclasses import replace

    scalars = [Fragment(n, "f32") for n in (A, B)] + [Fragment(N, "i32")]
    one = launch("k", "x", (Size("M"),), *scalars, list(body))
    return scoped(replace(one, resident=resident, once=once))


def test_a_scalar_is_given_its_value_where_it_is_declared():
    _, (first, second) = made(Each(A, ZERO), Each(B, Element(A)))
    assert first == Given(Fragment(A, "f32"), Each(A, ZERO), True)
    assert second == Given(Fragment(B, "f32"), Each(B, Element(A)), True)


def test_what_changes_is_not_constant():
    _, (first, second) = made(Each(A, ZERO), Each(A, ONE_NUMBER))
    assert isinstance(first, Given) and not first.constant and second == Each(A, ONE_NUMBER)


def test_what_one_loop_uses_is_declared_in_it():
    inner = Loop(N, ZERO, Size("N"), 1, (Each(A, Element(N)), Each(B, Element(A))))
    _, (loop,) = made(inner)
    assert [type(s) for s in loop.body] == [Given, Given], "the loop's own variable is not"


def test_what_a_loop_hands_on_is_declared_before_it():
    inner = Loop(N, ZERO, Size("N"), 1, (Each(A, Element(B)), Each(B, Element(A))))
    _, (first, loop) = made(Each(B, ZERO), inner)
    assert isinstance(first, Given) and isinstance(loop.body[0], Given)
    assert loop.body[1] == Each(B, Element(A))


def test_what_both_branches_use_is_declared_before_them():
    guard = Guard(Size("M"), (Each(A, ZERO),), (Each(A, ONE_NUMBER), Each(B, ZERO)))
    _, (declared, found) = made(guard)
    assert declared == Declare((Fragment(A, "f32"),))
    assert isinstance(found.others[1], Given) and found.others[0] == Each(A, ONE_NUMBER)


def test_what_is_done_once_keeps_its_values_for_all_tiles():
    once, body = made(Each(B, Element(A)), resident=4, once=(Each(A, ZERO),))
    assert [type(s) for s in (*once, *body)] == [Given, Given]


def test_registers_are_declared_before_they_are_written():
    axis = Axis("n", Layout(128, 1), Layout(4, 1), 4, Number(4))
    from dataclasses import replace

    one = launch("k", "x", (Size("M"),), Fragment(A, "f32", (axis,)), [Each(A, ZERO)])
    _, (declared, each) = scoped(replace(one, resident=0))
    assert declared == Declare((Fragment(A, "f32", (axis,)),)) and each == Each(A, ZERO)
    assert ONE == Layout(1, 0)
