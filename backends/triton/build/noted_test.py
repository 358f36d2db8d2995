"""Launches that were noted are made again as Triton makes them, on other tensors."""

import pytest
import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import JITFunction, native_specialize_impl
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.triton.build import noted
from backends.triton.build.module import load
from backends.triton.testing.chip import installed
from backends.triton.testing.golden_tensors import KERNELS

GOLDEN = "backends/triton/golden"
SCALE = (
    "import triton\nimport triton.language as tl\n\n{above}\n"
    "@triton.jit\ndef k_0(x, y, n=3, B: tl.constexpr = 4, m=1.5):\n"
    "    tl.store(y + tl.arange(0, B), tl.load(x) * n + m{more})\n\n\n"
    "@triton.jit\ndef k_1(y):\n    tl.store(y, 0.0)\n\n\n"
    "def launch(x, y):\n    k_1[(1,)](y, num_warps=1)\n    k_0[(2, 3)](x, y, m=2.5, num_warps=2)\n"
)
STREAM, HOOKS = 3, slice(6, 9)  # of what a launcher is given
AGAIN = noted._LaunchesAgain


@pytest.fixture
def chip(monkeypatch, tmp_path):
    """A GPU that is not here, as the one that Triton uses."""
    return installed(monkeypatch, tmp_path)


@pytest.fixture
def source(tmp_path):
    """A module of a source with two kernels."""

    def made(above="", more=""):
        file = tmp_path / "kernel.py"
        file.write_text(SCALE.format(above=above, more=more))
        return load(file, "time")

    return made


def addresses(given):
    """What a launcher was given, with addresses for tensors; where it is, too, in a tensor descriptor."""

    def one(value):
        if isinstance(value, torch.Tensor):
            return value.data_ptr()
        if hasattr(value, "base"):
            return vars(value) | {"base": value.base.data_ptr()}
        return value

    return [one(value) for value in given]


def again(made, tensors, stream=0):
    """Makes launches again on tensors."""
    for launch, arguments in made:
        launch(stream, [v if n is None else tensors[n].data_ptr() for n, v in arguments])


def test_this_version_of_triton_is_known():
    assert noted._KNOWN


@pytest.mark.parametrize("name", KERNELS)
def test_a_launcher_is_given_what_triton_gives_it(name, chip, request):
    launch = load(request.config.rootpath / GOLDEN / f"{name}.py", "time").launch
    first, second = ([torch.zeros(s, dtype=d) for s, d in KERNELS[name]] for _ in range(2))
    made = AGAIN.noted(launch, first)
    assert len(made) == len(chip.launched) == (2 if name == "split_k" else 1)
    for tensors in (first, second):
        chip.launched.clear()
        launch(*tensors)
        ordinary = list(chip.launched)
        chip.launched.clear()
        again(made, tensors)
        for one, other in zip(chip.launched, ordinary, strict=True):
            assert one[HOOKS] == (None, None, None)
            assert addresses(one[: HOOKS.start]) == addresses(other[: HOOKS.start])
            assert addresses(one[HOOKS.stop :]) == addresses(other[HOOKS.stop :])
            boxes = [v for v in other if isinstance(v, TensorDescriptor)]
            assert len(boxes) == (2 if name == "eight_bulk" else 0)


def test_values_that_a_kernel_has_of_itself_are_given(chip, source):
    tensors = [torch.zeros(8), torch.zeros(8)]
    made = AGAIN.noted(source().launch, tensors)
    chip.launched.clear()
    again(made, tensors, stream=7)
    cleared, scaled = chip.launched
    assert cleared[HOOKS.stop :] == (tensors[1].data_ptr(),)
    assert scaled[HOOKS.stop + 2 :] == (3, 4, 2.5) and scaled[:STREAM] == (2, 3, 1)
    assert cleared[STREAM] == scaled[STREAM] == 7


@pytest.mark.parametrize(
    "above, more",
    [
        ("STEP = tl.constexpr(2)\n\n", " * STEP"),
        ("@triton.heuristics({'B': lambda given: 4})", ""),
    ],
)
def test_triton_is_asked_each_time_where_it_compares_or_chooses(above, more, chip, source):
    tensors = [torch.zeros(8), torch.zeros(8)]
    assert AGAIN.noted(source(above, more).launch, tensors) is None
    assert len(chip.launched) == 2


def test_a_kernel_with_hooks_is_launched_by_triton(chip, source):
    module, seen = source(), []
    module.k_0.pre_run_hooks.append(lambda *_, **__: seen.append(1))
    assert AGAIN.noted(module.launch, [torch.zeros(8), torch.zeros(8)]) is None and seen == [1]


def test_a_tensor_that_no_caller_gave_is_not_known_later(chip, source):
    module, x = source(), torch.zeros(8)
    module.launch.__globals__["other"] = torch.zeros(8)
    exec("def launch(x):\n    k_1[(1,)](other)\n", module.__dict__)
    assert AGAIN.noted(module.launch, [x]) is None and len(chip.launched) == 1


def test_launches_are_made_on_the_current_device_and_stream(chip):
    chip.device, chip.stream = 1, 5
    assert AGAIN.place() == (1, 105)


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        (knobs.runtime, "debug", True),
        (knobs.runtime, "interpret", True),
        (knobs.runtime, "launch_enter_hook", lambda _: None),
        (knobs.compilation, "instrumentation_mode", "consan"),
        (knobs.runtime, "add_stages_inspection_hook", lambda *_, **__: ("", "")),
        (JITFunction, "run", lambda *_, **__: None),
    ],
)
def test_what_watches_launches_or_asks_for_other_code_has_triton_make_them(
    of, name, value, chip, monkeypatch
):
    assert AGAIN.place() is not None
    monkeypatch.setattr(of, name, value)
    assert AGAIN.place() is None


@pytest.mark.parametrize("target", [("cuda", 90, 32), ("hip", "gfx942", 64)])
def test_tensors_of_a_kind_are_specialised_alike(target, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "7" if target[0] == "hip" else None)
    backend, found = make_backend(GPUTarget(*target)), {}
    for dtype in (torch.float16, torch.int64):
        for wide in (0, 2**31 if target[0] == "hip" else 0):
            held = torch.empty(128 + wide, dtype=torch.uint8)  # memory that is not touched
            for at in (0, 8, 16, 24):
                view = held[at : at + 64].view(dtype)
                given = native_specialize_impl(backend, view, False, True, True)
                found.setdefault((dtype, AGAIN.kind([view])), set()).add(given)
    assert {len(given) for given in found.values()} == {1}
    assert len(found) == len(set.union(*found.values()))
