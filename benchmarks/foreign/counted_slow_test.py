"""Tests calls that are counted in their own process."""

import pytest
import torch

from benchmarks.foreign.counted import Request
from benchmarks.foreign.process import Refused, SolutionProcess
from benchmarks.foreign.whole import Answered, Counting
from search.evaluator.sandbox import Limits

REQUEST = Request(seed=5, calls=300)

SOLUTION = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1){more}
"""


class Softmax(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


@pytest.mark.parametrize("more", ["", " * (1.0 if x.numel() else 0.0) + 1e-3"])
def test_a_process_of_its_own_tells_what_the_judge_expects(more):
    """Calls through the line, with the reference's results computed in the judge's process."""
    torch.manual_seed(0)
    sets = [[torch.randn(8, 40)], [torch.randn(8, 40)]]
    asked = Counting(Softmax(), sets, Softmax()(*sets[0]), 3, 1e-5)
    process = SolutionProcess(Limits(cpu=None, memory=None, total=None))
    try:
        process.start()
        process.load(SOLUTION.replace("{more}", more))
        process.make([], {}, 0)
        process.hold(sets)
        process.draw()
        answered = [Answered(REQUEST, process.count(REQUEST, asked.scales))]
    finally:
        process.end()
    if more:
        with pytest.raises(Refused, match="in a counted call, number"):
            asked.require_sums(answered)
    else:
        asked.require_sums(answered)
