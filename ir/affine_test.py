"""Affine forms of positions."""

import pytest

from ir.affine import Affine, affine, fold_constants
from ir.spec import Apply, Index, Number, Read, Size
from testing.samples.samples import spec_of


def add(a, b):
    return Apply("add", (a, b))


def sub(a, b):
    return Apply("sub", (a, b))


def mul(a, b):
    return Apply("mul", (a, b))


I, J, K = Index("i"), Index("j"), Size("K")


def test_an_index_is_itself():
    assert affine(I) == Affine((("i", 1),))
    assert affine(I).index == "i"


def test_multiples_and_offsets_add_up():
    found = affine(sub(add(mul(Number(2), I), J), Number(1)))
    assert found.terms == (("i", 2), ("j", 1))
    assert found.offset == Number(-1)
    assert (found.coefficient("i"), found.coefficient("z")) == (2, 0)
    assert found.index is None


def test_a_multiple_may_stand_on_either_side():
    assert affine(mul(I, Number(3))) == affine(mul(Number(3), I))


def test_terms_that_cancel_are_gone():
    assert affine(sub(I, I)).terms == ()


def test_a_sum_in_parentheses_is_multiplied_out():
    found = affine(mul(Number(2), add(I, Number(3))))
    assert (found.terms, found.offset) == ((("i", 2),), Number(6))


def test_the_sign_reaches_offsets_and_indices():
    found = affine(Apply("neg", (add(I, Number(3)),)))
    assert (found.terms, found.offset) == ((("i", -1),), Number(-3))


def test_sizes_stay_in_the_offset():
    found = affine(add(I, sub(K, Number(1))))
    assert found.terms == (("i", 1),)
    assert found.offset == add(K, Number(-1))
    assert affine(Apply("floordiv", (K, Number(2)))).offset == Apply("floordiv", (K, Number(2)))


@pytest.mark.parametrize(
    "expr",
    [
        mul(I, J),
        mul(I, K),
        Apply("floordiv", (I, Number(2))),
        Read("x", (I,)),
        Apply("minimum", (I, Number(2))),
        Number(1.5),
        mul(Number(0.5), I),
    ],
)
def test_what_is_not_affine_has_no_form(expr):
    assert affine(expr) is None
    assert affine(add(expr, I)) is None


def test_positions_of_a_parsed_spec_have_forms():
    spec = spec_of("y[k] = x[2 * k + 1]", inputs="x: f32[2*K]", result="f32[K]")
    (read,) = spec.equations[0].reads()
    assert affine(read.at[0]) == Affine((("k", 2),), Number(1))


def test_offsets_reduction_what_is_known():
    assert fold_constants("add", Number(2), Number(3)) == Number(5)
    assert fold_constants("mul", Number(2), Number(3)) == Number(6)
    assert fold_constants("add", Number(0), K) == fold_constants("add", K, Number(0)) == K
    assert fold_constants("mul", Number(1), K) == K
    assert fold_constants("mul", Number(2), K) == mul(Number(2), K)
