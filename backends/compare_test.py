"""One output against a reference: what is known beforehand decides as the whole comparison does."""

from __future__ import annotations

import numpy as np
import pytest

from backends.backend import BackendError
from backends.compare import Errors, Form, Reference, Usual, compare_output
from ir.reference.rounding import HELD_AS, round_to

SHAPE = (64, 96)


def reference(dtype, draw="", noisy=0, shape=SHAPE):
    """Results of plain arithmetic that errs by about the last place."""
    rng = np.random.default_rng(3)
    exact = rng.standard_normal(shape) * 3.0
    held, *more = (round_to(exact * (1 + 1e-7 * n), dtype) for n in range(noisy + 1))
    return Reference({}, {"y": exact}, {"y": held}, tuple({"y": a} for a in more), draw)


def changed(kind, right):
    got = right.copy()
    if kind == "one element":
        got[5, 7] += 1.0
    elif kind == "an infinite element":
        got[5, 7] = np.inf
    elif kind == "no number":
        got[5, 7] = np.nan
    elif kind == "all larger":
        got *= got.dtype.type(1.03)
    elif kind == "noise":
        got *= 1 + got.dtype.type(0.03) * np.sign(np.sin(np.arange(got.size))).reshape(got.shape)
    elif kind == "a small row":
        got[9] *= 1.5
    return got


def said(form, got, known):
    try:
        return compare_output(form, {"M": 64}, "y", got, known)
    except BackendError as error:
        return str(error)


KINDS = [
    "right",
    "one element",
    "an infinite element",
    "no number",
    "all larger",
    "noise",
    "a small row",
]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_beforehand_decides_as_the_whole_comparison(kind, dtype, monkeypatch):
    known, form = reference(dtype, noisy=1), Form(dtype, dtype)
    known.exact["y"][9] *= 1e-2  # a row that the mean does not show
    known.storage["y"][9] = round_to(known.exact["y"][9], dtype)
    known.noisy[0]["y"][9] = known.storage["y"][9]
    got = round_to(changed(kind, known.storage["y"]), dtype)
    short = said(form, got, known)
    assert known.usual(form, "y") is not None
    monkeypatch.setattr(Usual, "of", lambda *_: None)
    whole = reference(dtype, noisy=1)
    for name in ("exact", "storage"):
        getattr(whole, name)["y"][9] = getattr(known, name)["y"][9]
    whole.noisy[0]["y"][9] = known.noisy[0]["y"][9]
    long = said(form, got, whole)
    assert whole.usual(form, "y") is None
    assert isinstance(short, Errors) == (kind == "right")
    if kind == "right":
        for part in ("rel_err", "reference_rel_err", "max_err"):
            assert getattr(short, part) == pytest.approx(getattr(long, part), rel=1e-12)
    else:
        assert short == long


@pytest.mark.parametrize("place", ["exact", "storage", "noisy"])
@pytest.mark.parametrize("value", [np.inf, np.nan, 1e300])
def test_what_is_not_finite_has_the_whole_comparison(place, value):
    known = reference("f32", noisy=1)
    group = known.noisy[0] if place == "noisy" else getattr(known, place)
    with np.errstate(over="ignore"):
        group["y"][3, 3] = value
    assert known.usual(Form("f32", "f32"), "y") is None


def test_few_elements_have_no_mean():
    known, form = reference("f32", shape=(3, 5)), Form("f32", "f32")
    usual = known.usual(form, "y")
    assert usual is not None and usual.allowance is None
    assert isinstance(said(form, known.storage["y"], known), Errors)
    assert "is allowed" in said(form, known.storage["y"] + HELD_AS["f32"](1.0), known)


def test_it_is_made_once(monkeypatch):
    known, form = reference("f32"), Form("f32", "f32")
    said(form, known.storage["y"], known)
    monkeypatch.setattr(Usual, "of", None)
    assert isinstance(said(form, known.storage["y"], known), Errors)
