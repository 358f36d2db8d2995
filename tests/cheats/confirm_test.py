"""A source that is right at the shapes of one secret alone is found by another."""

from dataclasses import replace

import pytest

from ir.errors import KernelError
from search.cli.confirm import require_confirmed
from search.core.evaluation import Evaluation
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Stages
from tests.cheats.case import Case, bench

FACTOR = "{x_t.tile(), 2.0}"


def source(factor):
    return Case("", "", "twice", "npu", edits=((FACTOR, f"{{x_t.tile(), {factor}}}"),)).candidate()


def test_another_secret_finds_what_was_written_for_the_shapes_of_one():
    tried = bench("twice", "npu")
    stages = Stages.of(tried)
    known = {sizes["K"] for sizes in (*stages.shapes, *stages.once)}
    cheat = source(f"({' || '.join(f'K == {k}' for k in sorted(known))}) ? 2.0 : 1.0")
    with LocalEvaluator([tried], 1) as evaluator:
        ((_, found),) = evaluator.evaluate([cheat])
    assert isinstance(found, Evaluation), found
    with pytest.raises(KernelError, match="not with another. check: at M="):
        require_confirmed(tried, [cheat], "another secret")
    require_confirmed(tried, [source("1.0 + 1.0")], "another secret")


def test_what_was_emitted_is_not_tried_again():
    tried = bench("twice", "npu")

    def never():
        raise AssertionError("nothing is evaluated")

    emitted = Case("", "", "twice", "npu", edits=()).candidate()
    require_confirmed(replace(tried, open=never), [emitted], "another secret")
