"""A `launch` is read, not run: it gives what Python's would, and can do nothing else."""

import ast
from pathlib import Path

import pytest
import torch

from backends.backend import BackendError
from backends.triton.build import plan
from backends.triton.build.module import launcher, load
from backends.triton.build.plan import Argument, Descriptor, plan_of

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.py"))
MARK = Path("/tmp/speciate-launch-ran")
KERNEL = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k_0(x, n, B: tl.constexpr):\n"
    "    tl.store(x, n)\n\n\n"
)


class Recorded:
    """Stands for a kernel, and keeps what is launched."""

    def __init__(self, name, kept):
        self.name, self.kept = name, kept

    def __getitem__(self, grid):
        def launch(*args, **options):
            self.kept.append((self.name, tuple(grid), list(map(described, args)), options))

        return launch


def described(value):
    """An argument as a plain value."""
    if isinstance(value, torch.Tensor):
        return value.data_ptr()
    if hasattr(value, "block_shape"):
        numbers = (value.shape, value.strides, value.block_shape)
        return value.base.data_ptr(), *(tuple(map(int, n)) for n in numbers)
    return value


def read(text, *tensors):
    """What the `launch` of a text launches, by its plan."""
    found = plan_of(ast.parse(text))
    assert found is not None
    return found.launches(tensors)


def body(*lines, tensors="x"):
    return KERNEL + f"def launch({tensors}):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("file", GOLDEN, ids=[f.stem for f in GOLDEN])
@pytest.mark.parametrize("size", [16, 33])
def test_it_gives_what_python_gives(file, size):
    module, kept = load(file, "build"), []
    names = module.launch.__code__.co_varnames[: module.launch.__code__.co_argcount]
    # One shape for all: what is launched is compared, not computed.
    tensors = [torch.zeros((size, size, size, size), dtype=torch.float16) for _ in names]
    known = plan_of(ast.parse(file.read_text()))
    for name in known.kernels:
        setattr(module, name, Recorded(name, kept))
    module.launch(*tensors)
    got = []
    for one in known.launches(tensors):
        args = [given(a, tensors) for a in one.arguments]
        got.append((one.kernel, one.grid, args, dict(one.options)))
    assert got == kept and kept


def given(value, tensors):
    if isinstance(value, Argument):
        return tensors[value.position].data_ptr()
    if isinstance(value, Descriptor):
        return tensors[value.position].data_ptr(), *(tuple(map(int, p)) for p in value.parts)
    return value


def test_sizes_choose_what_is_launched():
    text = body(
        "(M, N), half = x.shape, x.numel() // 2",
        "B = 64 if M % 64 == 0 and N > 1 else triton.next_power_of_2(M)",
        "for t in reversed(range(2)):",
        "    k_0[(triton.cdiv(M, B), t + 1)](x, half, B=B, num_warps=4)",
    )
    found = read(text, torch.zeros(96, 4))
    assert [(f.kernel, f.grid, f.options) for f in found] == [
        ("k_0", (1, 2), {"B": 128, "num_warps": 4}),
        ("k_0", (1, 1), {"B": 128, "num_warps": 4}),
    ]
    assert found[0].arguments == (Argument(0), 192)


@pytest.mark.parametrize(
    "line",
    [
        f"open('{MARK}', 'w')",
        f"__import__('pathlib').Path('{MARK}').touch()",
        f"exec(\"open('{MARK}', 'w')\")",
        "x.zero_()",
        "y = x + 1",
        "y = x.data_ptr()",
        "y = x.shape.__class__",
        "y = torch.zeros(4)",
        "k_0[(1,)](x, helper(x), B=4)",
        "k_0[(1,)](x, (lambda: 1)(), B=4)",
        "k_0[(1,)](x, [n for n in range(4)], B=4)",
        "k_0[lambda meta: (1,)](x, 1, B=4)",
        "k_0[(1,)](*[x], B=4)",
        "k_0[(1,)](x, 1, **{'B': 4})",
        "k_0[(x,)](x, 1, B=4)",
        "k_0[(1.5,)](x, 1, B=4)",
        "k_0.run(x)",
        "k_0 = 1",
        "x.shape = 1",
        "global y",
        "import os",
        "while True: pass",
        "y = 10 ** 10 ** 10",
        "y = 1 << 10 ** 9",
        "y = f'{x}'",
        "y = max(x)",
        "assert x.zero_()",
        "raise KeyboardInterrupt",
        "y = x.stride.__call__(0)",
        "try: pass\n    except ValueError: pass",
        "with x: pass",
        "for t in x: pass",
        "for t in range(10 ** 9): pass",
        "return x",
    ],
)
def test_what_is_no_choice_of_numbers_is_refused(line):
    MARK.unlink(missing_ok=True)
    with pytest.raises(BackendError) as seen:
        read(body(line), torch.zeros(4, 4))
    assert seen.value.stage == "build" and "is not for a launch" in seen.value.reason
    assert not MARK.exists()


def test_no_function_of_the_text_but_kernels_is_made(tmp_path):
    """Not even the definition is executed, with its defaults and annotations."""
    file = tmp_path / "kernel.py"
    file.write_text(
        f"{KERNEL}def helper(n=open('{MARK}', 'w')):\n    pass\n\n\n"
        f"def launch(x: open('{MARK}', 'w')):\n    k_0[(1,)](x, 1, B=4)\n"
    )
    MARK.unlink(missing_ok=True)
    made = launcher(file, "check")
    assert not MARK.exists()
    assert not hasattr(made._module, "launch") and not hasattr(made._module, "helper")
    assert hasattr(made._module, "k_0")


def test_errors_that_the_text_raises_are_its_own():
    text = body("if not x.is_contiguous():", '    raise ValueError("no")', "k_0[(1,)](x, 1, B=4)")
    with pytest.raises(ValueError, match="^no$"):
        read(text, torch.zeros(4, 4).T[:2])
    assert len(read(text, torch.zeros(4, 4))) == 1
    with pytest.raises(AssertionError, match="numel"):
        read(body("assert x.numel() > 99", "k_0[(1,)](x, 1, B=4)"), torch.zeros(4, 4))


def test_other_tensors_are_planned_anew(tmp_path, monkeypatch):
    file = tmp_path / "kernel.py"
    file.write_text(body("k_0[(x.shape[0],)](x, 1, B=4)"))
    made, kept = launcher(file, "check"), []
    monkeypatch.setattr(made._module, "k_0", Recorded("k_0", kept))
    read_again = []
    whole = plan.Plan.launches
    monkeypatch.setattr(
        plan.Plan, "launches", lambda self, t: read_again.append(1) or whole(self, t)
    )
    for size in (3, 5, 3):
        made(torch.zeros(size))
    assert [grid for _, grid, _, _ in kept] == [(3,), (5,), (3,)]
    assert len(read_again) == 2


def test_a_source_without_a_launch_is_refused(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    with pytest.raises(BackendError, match="has no function `launch`"):
        launcher(tmp_path / "kernel.py", "check")


@pytest.mark.parametrize(
    ("lines", "grids"),
    [
        (("if x.shape[0] > 2:", "    return", "k_0[(1,)](x, 1, B=4)"), []),
        (("k_0[(2,)](x, 1, B=4)", "return", "k_0[(1,)](x, 1, B=4)"), [(2,)]),
        (("n = x.shape[0] and 7", "k_0[(n,)](x, 1, B=4)"), [(7,)]),
        (("n = 0 or x.shape[0]", "k_0[(n,)](x, 1, B=4)"), [(3,)]),
        (("n = x.shape[0] and 0 or 5", "k_0[(n,)](x, 1, B=4)"), [(5,)]),
    ],
)
def test_an_early_end_and_words_of_logic_are_pythons(lines, grids):
    """What is judged is what runs where somebody calls the text as Python."""
    tensor, text = torch.zeros(3), body(*lines)
    assert [one.grid for one in read(text, tensor)] == grids
    kept, names = [], {"k_0": Recorded("k_0", [])}
    names["k_0"] = Recorded("k_0", kept)
    exec(text.partition("\n\n\ndef launch")[2].join(("def launch", "")), names)
    names["launch"](tensor)
    assert [grid for _, grid, _, _ in kept] == grids


def test_whether_two_numbers_are_one_object_is_no_question():
    with pytest.raises(BackendError, match="is not for a launch"):
        read(body("if x.shape[0] is 3:", "    k_0[(1,)](x, 1, B=4)"), torch.zeros(3))
