"""Products in every order of axes, computed by numpy as they are decided."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from backends.gpu.products import Operand, matmul
from backends.gpu.tile import Joined, Name, Permuted, Product, Reshaped
from ir.spec import Apply, Number

WIDTH = {"b": 2, "c": 3, "m": 4, "p": 5, "n": 8, "q": 6, "k": 16, "j": 7}


class Blocks:
    """As much of a launch's blocks as products ask for."""

    def __getitem__(self, index):
        return SimpleNamespace(wide=Number(WIDTH[index]))

    def shape(self, axes):
        return tuple(self[a].wide for a in axes)


def meaning(e, names):
    """What an expression gives, in numpy."""
    match e:
        case Name(_, stem):
            return names[stem]
        case Number(value):
            return value
        case Apply("mul", (a, b)):
            return meaning(a, names) * meaning(b, names)
        case Permuted(value, order):
            return meaning(value, names).transpose(order)
        case Reshaped(value, shape):
            return meaning(value, names).reshape([meaning(s, names) for s in shape])
        case Product(a, b, onto):
            left, right = meaning(a, names), meaning(b, names)
            assert left.ndim == right.ndim in (2, 3)
            return left @ right + (0.0 if onto is None else meaning(onto, names))
        case Joined("sum", onto, value):
            return meaning(onto, names) + meaning(value, names)
    raise AssertionError(e)


def tensor(axes, seed):
    return np.random.default_rng(seed).standard_normal([WIDTH[i] for i in axes])


def product(axes, a, b, onto, dtype="f16"):
    """What is made for a product over axes of single letters, and whether it gives what it should."""
    x, w, acc = (Name("value", n) for n in ("x", "w", "acc"))
    left, right = Operand(x, tuple(a), dtype), Operand(w, tuple(b), dtype)
    made = matmul(Blocks(), acc, tuple(axes), left, right, onto)
    names = {"x": tensor(a, 1), "w": tensor(b, 2), "acc": tensor(axes, 3)}
    exact = np.einsum(f"{a},{b}->{axes}", names["x"], names["w"]) + (names["acc"] if onto else 0)
    np.testing.assert_allclose(meaning(made, names), exact, rtol=1e-10, atol=1e-10)
    return made


@pytest.mark.parametrize("onto", [True, False])
@pytest.mark.parametrize("axes", ["mn", "nm"])
def test_every_order_of_a_plain_product(axes, onto):
    for a, b in itertools.product(("mk", "km"), ("kn", "nk")):
        product(axes, a, b, onto)
        product(axes, b, a, onto)


def test_a_product_in_its_natural_order_adds_onto_its_value():
    x, w, acc = (Name("value", n) for n in ("x", "w", "acc"))
    transposed = (1, 0)
    assert product("mn", "mk", "kn", True) == Product(x, w, acc, "f16")
    assert product("mn", "mk", "nk", True) == Product(x, Permuted(w, transposed), acc, "f16")
    assert product("nm", "mk", "kn", True) == Product(
        Permuted(w, transposed), Permuted(x, transposed), acc, "f16"
    )


@pytest.mark.parametrize("onto", [True, False])
def test_one_batch_stays_the_first_axis(onto):
    for axes in ("bmn", "mbn", "nmb", "mnb"):
        for a, b in itertools.product(("bmk", "kbm", "mkb"), ("bkn", "nbk")):
            product(axes, a, b, onto)


@pytest.mark.parametrize("onto", [True, False])
def test_several_rows_columns_and_sums_are_joined(onto):
    for axes in ("mpn", "pnm", "npm"):
        for a, b in itertools.product(("mpk", "kpm", "pkm"), ("kn", "nk")):
            product(axes, a, b, onto)
    for a, b in itertools.product(("mkj", "jmk"), ("kjn", "njk")):
        product("mn", a, b, onto)
    product("mpnq", "kmp", "qkn", onto)
    product("mnpq", "mkp", "nqk", onto)


def test_groups_of_axes_in_another_order_are_joined_before_they_change_places():
    w = Name("value", "w")
    (made,) = (e for e in product("mpn", "mk", "pnk", True).walk() if isinstance(e, Product))
    match made.b:
        case Permuted(Reshaped(value, sides), order):
            assert (value, order) == (w, (1, 0))
            assert [meaning(n, {}) for n in sides] == [WIDTH["p"] * WIDTH["n"], WIDTH["k"]]
        case other:
            raise AssertionError(other)
    (made,) = (e for e in product("mpn", "mk", "pkn", True).walk() if isinstance(e, Product))
    assert isinstance(made.b, Reshaped)  # `p` and `n` are not adjacent


@pytest.mark.parametrize("onto", [True, False])
def test_several_batches_are_joined(onto):
    product("bcmn", "bcmk", "bckn", onto)
    product("bmcn", "cbmk", "kbcn", onto)


@pytest.mark.parametrize("dtype", ["f32", "tf32", "bf16", "f16"])
def test_a_product_has_the_dtype_of_its_operands(dtype):
    assert product("mn", "mk", "kn", True, dtype).dtype == dtype


@pytest.mark.parametrize(
    ("a", "b", "dtype", "transposed"),
    [
        ("kj", "nk", "tf32", True),  # operand B would be n by k, with its columns contiguous
        ("jk", "nk", "tf32", False),  # what is summed comes last in both
        ("kj", "kn", "tf32", False),  # in neither
        ("kj", "nk", "bf16", False),  # the large instruction takes both orders
    ],
)
def test_operand_b_of_4_bytes_has_what_is_summed_last(monkeypatch, a, b, dtype, transposed):
    monkeypatch.setitem(WIDTH, "j", 64)
    x, w, acc = (Name("value", n) for n in ("x", "w", "acc"))
    sides = Operand(x, tuple(a), dtype), Operand(w, tuple(b), dtype)
    made = matmul(Blocks(), acc, tuple("nj"), *sides, onto=False, k_last=True)
    assert isinstance(made, Permuted) == transposed
    names = {"x": tensor(a, 1), "w": tensor(b, 2)}
    exact = np.einsum(f"{a},{b}->nj", names["x"], names["w"])
    np.testing.assert_allclose(meaning(made, names), exact, rtol=1e-10)
