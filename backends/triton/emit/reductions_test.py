"""The table of folds, held against the language."""

import numpy as np
import pytest

from backends.triton.emit.reductions import FOLDS, fold_text
from ir.functions import SCANS
from ir.lower.limits import NEUTRAL

NUMPY = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "any": np.any, "all": np.all}


@pytest.mark.parametrize("fold", FOLDS)
def test_what_is_neutral_changes_nothing(fold):
    values = np.array([0.0, 1.0, 1.0]) if fold in ("any", "all") else np.array([-2.0, 0.5, 3.0])
    folded = NUMPY[fold](values)
    assert NUMPY[fold]([*values, NEUTRAL[fold]]) == folded
    truth = {"any": bool, "all": bool}.get(fold, float)
    names = {"a": truth(folded), "b": truth(NEUTRAL[fold])}

    class tl:
        maximum, minimum = max, min

    assert eval(FOLDS[fold].onto.format("a", "b"), {"tl": tl, **names}) == folded


@pytest.mark.parametrize(("fold", "helper"), [("max", "larger"), ("min", "smaller")])
def test_extremes_of_floats_give_nan_unless_it_is_not_needed(fold, helper):
    assert fold_text(fold, "f32").over == f"tl.reduce({{0}}, {{1}}, {helper})"
    assert fold_text(fold, "f32").onto == f"{helper}({{0}}, {{1}})"
    assert fold_text(fold, "i32") == fold_text(fold, "f32", nan=False) == FOLDS[fold]


def test_every_scan_has_a_text():
    assert all(FOLDS[fold].scan for fold in SCANS.values())
