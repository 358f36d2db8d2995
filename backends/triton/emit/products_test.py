"""Products in every order of axes, computed by numpy as they are written."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest

from backends.triton.emit.products import Operand, Products

WIDTH = {"b": 2, "c": 3, "m": 4, "p": 5, "n": 8, "q": 6, "k": 16, "j": 7}


class Blocks:
    """As much of a launch's blocks as products ask for."""

    def __getitem__(self, index):
        return SimpleNamespace(text=str(WIDTH[index]))

    def shape(self, axes):
        return f"[{', '.join(str(WIDTH[a]) for a in axes)}]"


class Language:
    """What the texts call, in numpy."""

    trans = staticmethod(lambda a: a.T)
    permute = staticmethod(lambda a, *order: a.transpose(order))
    reshape = staticmethod(lambda a, shape: a.reshape(shape))

    @staticmethod
    def dot(a, b, onto=0.0, input_precision=""):
        assert a.ndim == b.ndim in (2, 3)
        return a @ b + onto


def tensor(axes, seed):
    return np.random.default_rng(seed).standard_normal([WIDTH[i] for i in axes])


def product(axes, a, b, onto, dtype="f16"):
    """The text for a product over axes of single letters, and whether it gives what it should."""
    text = Products(Blocks()).text(
        "acc", tuple(axes), Operand("x", tuple(a), dtype), Operand("w", tuple(b), dtype), onto
    )
    x, w, acc = tensor(a, 1), tensor(b, 2), tensor(axes, 3)
    exact = np.einsum(f"{a},{b}->{axes}", x, w) + (acc if onto else 0)
    got = eval(text, {"tl": Language, "x": x, "w": w, "acc": acc})
    np.testing.assert_allclose(got, exact, rtol=1e-10, atol=1e-10)
    return text


@pytest.mark.parametrize("onto", [True, False])
@pytest.mark.parametrize("axes", ["mn", "nm"])
def test_every_order_of_a_plain_product(axes, onto):
    for a, b in itertools.product(("mk", "km"), ("kn", "nk")):
        product(axes, a, b, onto)
        product(axes, b, a, onto)


def test_a_product_in_its_natural_order_adds_onto_its_value():
    assert product("mn", "mk", "kn", True) == "tl.dot(x, w, acc)"
    assert product("mn", "mk", "nk", True) == "tl.dot(x, tl.trans(w), acc)"
    assert product("nm", "mk", "kn", True) == "tl.dot(tl.trans(w), tl.trans(x), acc)"


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


@pytest.mark.parametrize("onto", [True, False])
def test_several_batches_are_joined(onto):
    product("bcmn", "bcmk", "bckn", onto)
    product("bmcn", "cbmk", "kbcn", onto)


@pytest.mark.parametrize(
    ("dtype", "precision"), [("f32", "ieee"), ("tf32", "tf32"), ("bf16", None), ("f16", None)]
)
def test_products_of_32_bits_say_how_they_are_rounded(dtype, precision):
    found = re.findall(r'input_precision="(\w+)"', product("mn", "mk", "kn", True, dtype))
    assert found == ([precision] if precision else [])
