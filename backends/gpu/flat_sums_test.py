"""Sums of matmuls are matrices in the loops that only add to them."""

from backends.gpu.flat_sums import FlatSum, with_flat_sums
from backends.gpu.tile import Assign, Compute, Full, Joined, Loop, Name, Permuted, Product, Reshaped
from ir.spec import Number

ACC, A, B, STEP = Name("value", "acc"), Name("value", "a"), Name("value", "b"), Name("origin", "k")
APART = (Number(2), Number(64), Number(128))
MATRIX = (Number(128), Number(128))
FLAT = FlatSum(MATRIX, APART, ("s", "j", "l"), ("j", "l", "s"))
FILL = Assign(ACC, Full(Number(0.0), (Number(64), Number(128), Number(2)), "f32"))
PRODUCT = Product(A, B, None, "tf32")
ADD = Assign(ACC, Joined("sum", ACC, Permuted(Reshaped(PRODUCT, APART), (1, 2, 0)), False))


def loop(*body):
    return Loop(STEP, Number(0), Number(64), 32, body)


def flat(*block):
    return with_flat_sums(block, {ACC: FLAT})


def test_a_sum_is_a_matrix_in_its_loop_and_has_its_axes_behind_it():
    use = Assign(Name("value", "y"), ACC)
    fill, looped, apart, used = flat(FILL, loop(ADD), use)
    assert fill == Assign(ACC, Full(Number(0.0), MATRIX, "f32"))
    assert looped == loop(Assign(ACC, Product(A, B, ACC, "tf32")))
    assert apart == Assign(ACC, Permuted(Reshaped(ACC, APART), (1, 2, 0)))
    assert used is use


def test_loops_in_loops_and_loops_in_parts_are_alike():
    fill, first, second, apart = flat(FILL, loop(loop(ADD)), loop(ADD))
    assert fill.value.shape == MATRIX
    assert first.body[0].body == second.body
    assert apart.value.value == Reshaped(ACC, APART)


def test_a_sum_that_its_loop_rescales_stays_as_it_is():
    scale = Assign(ACC, Compute("mul", (ACC, Name("value", "scale"))))
    block = (FILL, loop(scale, ADD))
    assert flat(*block) == block


def test_a_sum_that_is_read_before_its_loop_stays_as_it_is():
    block = (FILL, Assign(Name("value", "y"), ACC), loop(ADD))
    assert flat(*block) == block


def test_a_product_outside_of_loops_stays_as_it_is():
    assert flat(FILL, ADD) == (FILL, ADD)
