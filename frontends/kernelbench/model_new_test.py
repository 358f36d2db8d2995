"""A solution file runs as its problem does, with the calls of a network in between."""

import pytest
import torch

from frontends.kernelbench.model_new import solution
from frontends.kernelbench.problem import Problem
from frontends.pytorch.module import imported
from ir.errors import KernelError
from ir.network import Buffer, Network, Step
from ir.parse.parse import parse_spec

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scales = torch.nn.ModuleList([torch.nn.Linear(n, 1, bias=False)])
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        y = (x * self.scales[0].weight).reshape(3, 2, 4)
        return {"y": y + 1, "all": [x, 7]}

def get_inputs():
    return [torch.rand(6, 4)]

def get_init_inputs():
    return [4]
"""
SCALE = '''
import torch

def launch(x, w, y):
    y.copy_(x * w)

def scale(x, w):
    """Not `launch` itself."""
    y = torch.empty_like(x)
    launch(x, w, y)
    return y
'''
MORE = '''
import torch

SIZE = 1

def launch(x, y):
    y.copy_(x + SIZE)

def more(x):
    assert x.shape in ((1,), (3, 2, 4))
    y = torch.empty_like(x)
    launch(x, y)
    return y
'''


def network(made, x="x", between="between"):
    scale = parse_spec(
        'def scale(x: f32[6, 4], w: f32[1, 4]) -> f32[6, 4]:\n    """s"""\n'
        "    y[m, n] = x[m, n] * w[0, n]\n    return y\n"
    )
    more, count = (
        parse_spec(f'def more(x: f32[{sizes}]) -> f32[{sizes}]:\n    """m"""\n'
                   f"    y[{at}] = x[{at}] + 1.0\n    return y\n")
        for sizes, at in (("3, 2, 4", "a, b, c"), ("1", "a"))
    )  # fmt: skip
    weight, calls = (h.name for h in sorted(made.held, key=lambda h: h.path, reverse=True))
    result, mutated = (t.name for t in made.spec.outputs)
    buffers = (
        Buffer(x, "f32", (6, 4), "input"), Buffer(weight, "f32", (1, 4), "input"),
        Buffer(calls, "f32", (1,), "input"), Buffer(between, "f32", (6, 4), "between"),
        Buffer(result, "f32", (3, 2, 4), "output"), Buffer(mutated, "f32", (1,), "output"),
    )  # fmt: skip
    steps = (
        Step(scale, (x, weight), (between,)), Step(more, (between,), (result,)),
        Step(count, (calls,), (mutated,)),
    )  # fmt: skip
    return Network("p", buffers, steps, ((result, (3, 2, 4)), (mutated, (1,))))


def written():
    problem = Problem("p", PROBLEM, "p.py")
    given = problem.made()
    made = imported(given.model, given.inputs)
    sources = {"scale": SCALE, "more": MORE}
    return solution(problem, made).text(network(made), sources), given


def test_the_solution_does_what_the_problem_does():
    text, given = written()
    names = {}
    exec(compile(text, "new.py", "exec"), names)
    torch.manual_seed(0)
    new = names["ModelNew"](4)
    found, expected = new(*given.inputs), given.model(*given.inputs)
    assert torch.equal(found["y"], expected["y"])
    assert found["all"][0] is given.inputs[0] and found["all"][1] == 7
    assert torch.equal(new.calls, given.model.calls)


@pytest.mark.parametrize(
    "x, between", [("torch", "torch_"), ("int", "float"), ("args", "_leaves"), ("out_y", "x_out_y")]
)
def test_no_tensor_takes_the_name_of_something_else(x, between):
    text = PROBLEM.replace("self, x", f"self, {x}").replace("(x *", f"({x} *").replace("[x,", f"[{x},")
    problem = Problem("p", text, "p.py")
    given = problem.made()
    made = imported(given.model, given.inputs)
    names = {}
    exec(solution(problem, made).text(network(made, x, between), {"scale": SCALE, "more": MORE}), names)
    torch.manual_seed(0)
    found, expected = names["ModelNew"](4)(*given.inputs), given.model(*given.inputs)
    assert torch.equal(found["y"], expected["y"])


def test_constants_are_written_as_they_are():
    mask = torch.tensor([0.0, float("-inf"), 2.5])
    made = imported(lambda x: x + mask, [torch.zeros(3)])
    (line,) = [g for g in solution(Problem("p", PROBLEM, "p.py"), made).given if "tensor(" in g]
    names = {"torch": torch, "x": torch.zeros(1)}
    exec(line, names)
    assert torch.equal(names[line.partition(" ")[0]], mask)


def test_a_name_of_the_problem_is_no_kernels():
    problem = Problem("p", PROBLEM + "SIZE = 4\n", "p.py")
    made = imported((given := problem.made()).model, given.inputs)
    text = solution(problem, made).text(network(made), {"scale": SCALE, "more": MORE})
    assert "SIZE_more = 1" in text and "SIZE = 4" in text and "x + SIZE_more" in text


def test_a_source_without_its_function_is_refused():
    problem = Problem("p", PROBLEM, "p.py")
    made = imported((given := problem.made()).model, given.inputs)
    with pytest.raises(KernelError, match="no function of that name"):
        solution(problem, made).text(network(made), {"scale": SCALE, "more": "x = 1"})


def test_names_that_kernels_share_are_parted():
    text, _ = written()
    assert "def launch_scale(" in text and "def launch_more(" in text
    assert '"""Not `launch` itself."""' in text
    assert "SIZE = 1" in text


def test_memory_between_steps_is_given_back():
    text, _ = written()
    assert "        del between\n" in text and text.count("        del ") == 1


def test_what_is_left_to_pytorch_is_refused():
    problem = Problem("p", PROBLEM, "p.py")
    made = imported(lambda x: torch.linalg.eigvalsh(x) + 1, [torch.eye(3)],
                    allow_torch=["_linalg_eigh"])  # fmt: skip
    with pytest.raises(KernelError, match="left to PyTorch"):
        solution(problem, made)
