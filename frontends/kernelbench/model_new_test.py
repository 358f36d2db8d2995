"""A solution file runs as its problem does, with the calls of a network in between."""

import pytest
import torch

from frontends.kernelbench.model_new import solution
from frontends.kernelbench.parts import Constants, KernelText
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
    """Not `launch` of another source."""
    y.copy_(x * w)

def scale(x, w):
    """For others, with tensors of their own."""
    y = torch.empty_like(x)
    launch(x, w, y)
    return y
'''
MORE = """
import torch

SIZE = 1

def launch(x, y):
    assert x.shape == y.shape and x.shape in ((1,), (3, 2, 4))
    y.copy_(x + SIZE)
"""


def texts(**sources):
    return {name: KernelText(source) for name, source in sources.items()}


def network(made, x="x", between="between", held=((6, 4), (3, 2, 4))):
    """held: shapes of the buffers that the kernels `scale` and `more` write."""
    scale = parse_spec(
        'def scale(x: f32[6, 4], w: f32[1, 4]) -> f32[6, 4]:\n    """s"""\n'
        "    y[m, n] = x[m, n] * w[0, n]\n    return y\n"
    )
    more, count = (
        parse_spec(
            f'def more(x: f32[{sizes}]) -> f32[{sizes}]:\n    """m"""\n'
            f"    y[{at}] = x[{at}] + 1.0\n    return y\n"
        )
        for sizes, at in (("3, 2, 4", "a, b, c"), ("1", "a"))
    )
    weight, calls = (h.name for h in sorted(made.held, key=lambda h: h.path, reverse=True))
    result, mutated = (t.name for t in made.spec.outputs)
    buffers = (
        Buffer(x, "f32", (6, 4), "input"),
        Buffer(weight, "f32", (1, 4), "input"),
        Buffer(calls, "f32", (1,), "input"),
        Buffer(between, "f32", held[0], "between"),
        Buffer(result, "f32", held[1], "output"),
        Buffer(mutated, "f32", (1,), "output"),
    )
    steps = (
        Step(scale, (x, weight), (between,)),
        Step(more, (between,), (result,)),
        Step(count, (calls,), (mutated,)),
    )
    return Network("p", buffers, steps, ((result, (3, 2, 4)), (mutated, (1,))))


def written(text=PROBLEM, scale=SCALE, more=MORE, **shapes):
    problem = Problem("p", text, "p.py")
    given = problem.made()
    made = imported(given.model, given.inputs)
    return solution(problem, made).text(
        network(made, **shapes), texts(scale=scale, more=more)
    ), given


def made_new(**shapes):
    names = {}
    exec(compile(written(**shapes)[0], "new.py", "exec"), names)
    torch.manual_seed(0)
    return names["ModelNew"](4)


@pytest.mark.parametrize("held", [((6, 4), (3, 2, 4)), ((3, 2, 4), (3, 2, 4)), ((24,), (6, 4))])
def test_the_solution_does_what_the_problem_does(held):
    """Whatever shapes the kernels see the network's buffers in."""
    given = written()[1]
    new = made_new(held=held)
    found, expected = new(*given.inputs), given.model(*given.inputs)
    assert torch.equal(found["y"], expected["y"])
    assert found["all"][0] is given.inputs[0] and found["all"][1] == 7
    assert torch.equal(new.calls, given.model.calls)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((torch.zeros(9, 4),), "`x` is torch.float32[9, 4]; allowed: torch.float32[6, 4]"),
        ((torch.zeros(1, 6, 4),), "`x` is torch.float32[1, 6, 4]; allowed: torch.float32[6, 4]"),
        ((torch.zeros(6, 4).double(),), "`x` is torch.float64[6, 4]; allowed: torch.float32[6, 4]"),
        (
            (torch.zeros(6, 4, device="meta"),),
            "`scales.0.weight` is on cpu; allowed: meta, as the first input",
        ),
        (([[0.0] * 4] * 6,), "`ModelNew` is given 24 arguments; allowed: 1"),
        ((0.0,), "`x` is float; allowed: a tensor"),
        ((torch.zeros(6, 4), 1), "`ModelNew` is given 2 arguments; allowed: 1"),
    ],
)
def test_a_model_refuses_what_it_was_not_built_for(given, words):
    new = made_new()
    with pytest.raises((ValueError, TypeError)) as caught:
        new(*given)
    assert str(caught.value) == words and new.calls == 0


def test_a_model_takes_arguments_in_any_order_of_memory():
    x = torch.rand(4, 6).t()
    new = made_new()
    torch.testing.assert_close(new(x)["y"], new(x.contiguous())["y"])


def test_a_model_of_another_dtype_is_refused():
    with pytest.raises(ValueError, match=r"`scales\.0\.weight` is torch.float16\[1, 4\]; allowed"):
        made_new().half()(torch.zeros(6, 4))


def test_a_model_has_no_gradients_to_give_and_refuses_to_be_asked():
    new, x = made_new(), torch.zeros(6, 4)
    assert not any(p.requires_grad for p in new.parameters())
    new(x)  # KernelBench times it in grad mode
    with pytest.raises(ValueError, match="`x` requires gradients, .*no_grad"):
        new(x.clone().requires_grad_())
    new.requires_grad_(True)
    with pytest.raises(ValueError, match=r"`scales\.0\.weight` requires gradients, .*no_grad"):
        new(x)
    with torch.no_grad():
        assert not new(x.requires_grad_())["y"].requires_grad


def test_another_plain_argument_is_refused():
    text = PROBLEM.replace("forward(self, x)", "forward(self, x, mode)")
    text = text.replace("[torch.rand(6, 4)]", "[torch.rand(6, 4), 'mean']")
    problem = Problem("p", text, "p.py")
    made = imported((given := problem.made()).model, given.inputs)
    lines = [g for g in solution(problem, made).call.given if "_leaves[1]" in g]
    names = {"_leaves": [None, "mean"]}
    exec("\n".join(lines), names)
    with pytest.raises(ValueError, match="an argument is 'no'; allowed: 'mean', as"):
        exec("\n".join(lines), names | {"_leaves": [None, "no"]})


TRIPLED = """
import torch

COUNT = [0]

def launch(w, y):
    COUNT[0] += 1
    y.copy_(3 * w)
"""


def made_with_constants():
    """A `ModelNew` whose call takes the weight three times, computed before it; and how often."""
    problem = Problem("p", PROBLEM, "p.py")
    made = imported((given := problem.made()).model, given.inputs)
    call = network(made)
    weight = next(h.name for h in made.held if "weight" in h.path)
    spec = parse_spec(
        'def tripled(w: f32[1, 4]) -> f32[1, 4]:\n    """t"""\n    y[m, n] = 3.0 * w[m, n]\n'
        "    return y\n"
    )
    buffers = (Buffer(weight, "f32", (1, 4), "input"), Buffer("w3", "f32", (1, 4), "output"))
    before = Network("c", buffers, (Step(spec, (weight,), ("w3",)),), (("w3", (1, 4)),))
    first, *steps = call.steps
    more = Buffer("w3", "f32", (1, 4), "input")
    steps = (Step(first.spec, ("x", "w3"), first.outputs), *steps)
    call = Network("p", (*call.buffers, more), steps, call.outputs)
    constants = Constants(before, ("w3",), texts(tripled=TRIPLED))
    text = solution(problem, made).text(call, texts(scale=SCALE, more=MORE), constants)
    names = {}
    exec(compile(text, "new.py", "exec"), names)
    return names["ModelNew"](4), names["COUNT"]


def test_constants_are_computed_once_and_when_parameters_have_changed():
    new, count = made_with_constants()
    x = torch.rand(6, 4)
    held = new.scales[0]

    def agrees(count_now):
        expected = (x * (3 * held.weight)).reshape(3, 2, 4) + 1
        assert torch.equal(new(x)["y"], expected) and count == [count_now]

    agrees(1)
    agrees(1)
    held.weight.mul_(2)
    agrees(2)
    held.weight.data = torch.rand(1, 4)
    agrees(3)
    held.weight = torch.nn.Parameter(torch.rand(1, 4), requires_grad=False)
    agrees(4)
    new.load_state_dict({"scales.0.weight": torch.rand(1, 4), "calls": torch.zeros(1)})
    agrees(5)
    agrees(5)
    held.weight.data = torch.rand(1, 8)[:, ::2]  # copied at each call: it may be another one
    for n in (6, 7):
        agrees(n)


SHARED = """
@torch.no_grad()
def twice(x):
    return 2 * x
"""


def test_functions_that_sources_define_alike_stand_once():
    both = {"scale": SCALE + SHARED, "more": MORE + SHARED}
    text = written(**both)[0]
    assert text.count("def twice(x)") == 1 and "twice_" not in text
    exec(compile(text, "new.py", "exec"), {})
    text = written(scale=SCALE + SHARED, more=MORE + SHARED.replace("2 *", "SIZE *"))[0]
    assert "def twice_scale(x)" in text and "def twice_more(x)" in text
    text = written(PROBLEM + SHARED, **both)[0]
    assert "def twice_scale(x)" in text and "def twice_more(x)" in text


@pytest.mark.parametrize(
    "x, between", [("torch", "torch_"), ("int", "float"), ("args", "_leaves"), ("out_y", "x_out_y")]
)
def test_no_tensor_takes_the_name_of_something_else(x, between):
    text = (
        PROBLEM.replace("self, x", f"self, {x}").replace("(x *", f"({x} *").replace("[x,", f"[{x},")
    )
    problem = Problem("p", text, "p.py")
    given = problem.made()
    made = imported(given.model, given.inputs)
    names = {}
    exec(
        solution(problem, made).text(network(made, x, between), texts(scale=SCALE, more=MORE)),
        names,
    )
    torch.manual_seed(0)
    found, expected = names["ModelNew"](4)(*given.inputs), given.model(*given.inputs)
    assert torch.equal(found["y"], expected["y"])


def test_constants_are_written_as_they_are():
    mask = torch.tensor([0.0, float("-inf"), 2.5])
    made = imported(lambda x: x + mask, [torch.zeros(3)])
    ((_, text),) = solution(Problem("p", PROBLEM, "p.py"), made).call.numbers
    assert torch.equal(eval(text, {"torch": torch, "device": "cpu"}), mask)


def test_a_name_of_the_problem_is_no_kernels():
    problem = Problem("p", PROBLEM + "SIZE = 4\n", "p.py")
    made = imported((given := problem.made()).model, given.inputs)
    text = solution(problem, made).text(network(made), texts(scale=SCALE, more=MORE))
    assert "SIZE_more = 1" in text and "SIZE = 4" in text and "x + SIZE_more" in text


def test_complex_parameters_are_refused():
    class Rotated(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4, dtype=torch.cfloat))

        def forward(self, x):
            return (x * self.w).real

    made = imported(Rotated(), (torch.zeros(6, 4),))
    with pytest.raises(KernelError, match="`w` is complex"):
        solution(Problem("p", PROBLEM, "p.py"), made)


def test_a_source_without_a_launch_is_refused():
    problem = Problem("p", PROBLEM, "p.py")
    made = imported((given := problem.made()).model, given.inputs)
    with pytest.raises(KernelError, match="defines no function `launch`"):
        solution(problem, made).text(network(made), texts(scale=SCALE, more="x = 1"))


def test_names_that_kernels_share_are_told_apart():
    text, _ = written()
    assert "def launch_scale(" in text and "def launch_more(" in text
    assert '"""Not `launch` of another source."""' in text
    assert "SIZE = 1" in text and "def scale(" not in text


def test_what_is_left_to_pytorch_is_refused():
    problem = Problem("p", PROBLEM, "p.py")
    made = imported(
        lambda x: torch.linalg.eigvalsh(x) + 1, [torch.eye(3)], allow_torch=["_linalg_eigh"]
    )
    with pytest.raises(KernelError, match="left to PyTorch"):
        solution(problem, made)


def test_a_result_without_elements_is_refused():
    problem = Problem("p", PROBLEM, "p.py")
    with pytest.raises(KernelError, match="result `mul` has no elements"):
        solution(problem, imported(lambda x: (x * 2, x.sum() + 1), [torch.zeros(0, 3)]))


JOINED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cat([x + 1, x * 2], 1) - 3

def get_inputs():
    return [torch.rand(6, 4)]

def get_init_inputs():
    return []
"""
FIRST = '''
import torch

def launch(x, y):
    """Stores a part of `y`."""
    assert y.shape == (6, 8)
    y[:, :4] = x + 1
'''
SECOND = FIRST.replace("y[:, :4] = x + 1", "y[:, 4:] = x * 2")
LAST = """
import torch

def launch(y, z):
    z.copy_(y - 3)
"""


def test_parts_are_stored_to_one_buffer():
    def kernel(name, value, size, held):
        return parse_spec(
            f'def {name}(x: f32[6, {size}]) -> f32[6, {held}]:\n    """k"""\n'
            f"    y[m, n] = x[m, n] {value}\n    return y\n"
        )

    problem = Problem("p", JOINED, "p.py")
    given = problem.made()
    made = imported(given.model, given.inputs)
    (result,) = (t.name for t in made.spec.outputs)
    buffers = (
        Buffer("x", "f32", (6, 4), "input"),
        Buffer("t", "f32", (48,), "between"),
        Buffer(result, "f32", (6, 8), "output"),
    )
    steps = (
        Step(kernel("first", "+ 1.0", 4, "part(4, first=0, of=8)"), ("x",), ("t",)),
        Step(kernel("second", "* 2.0", 4, "part(4, first=4, of=8)"), ("x",), ("t",)),
        Step(kernel("last", "- 3.0", 8, 8), ("t",), (result,)),
    )
    network = Network("p", buffers, steps, ((result, (6, 8)),))
    text = solution(problem, made).text(network, texts(first=FIRST, second=SECOND, last=LAST))
    names = {}
    exec(compile(text, "new.py", "exec"), names)
    x = torch.rand(6, 4)
    assert torch.equal(names["ModelNew"]()(x), given.model(x))
    assert text.count('"t": (0, torch.float32, (48,))') == 1 and "memory=256" in text
