"""A repeated launch gives the driver what Triton's own way would, and takes that way where it could differ."""

import runpy
from pathlib import Path

import pytest
import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import JITFunction, native_specialize_impl
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.triton.build import direct, module
from backends.triton.build.module import launcher
from backends.triton.testing.chip import installed
from backends.triton.testing.golden_tensors import EIGHT, KERNELS

HERE = Path(__file__).parents[1]
SCALE = HERE / "testdata" / "scale.py"
GUARDED = (
    "import triton\nimport triton.language as tl\n\nSTEP = tl.constexpr(2)\n\n\n"
    "@triton.jit\ndef k_0(x, y):\n    tl.store(y, tl.load(x) * STEP)\n\n\n"
    "def launch(x, y):\n    k_0[(1,)](x, y)\n"
)
DEFAULTS = (
    "import triton\nimport triton.language as tl\n\n\n"
    "@triton.jit\ndef k_0(x, y, n=3, B: tl.constexpr = 4, m=1.5):\n"
    "    tl.store(y + tl.arange(0, B), tl.load(x) * n + m)\n\n\n"
    "def launch(x, y):\n    k_0[(2, 3)](x, y, m=2.5)\n"
)
CHOOSES = (
    "import triton\nimport triton.language as tl\n\n\n"
    "@triton.heuristics({'B': lambda given: 4})\n@triton.jit\ndef k_0(x, y, B: tl.constexpr):\n"
    "    tl.store(y + tl.arange(0, B), tl.load(x))\n\n\n"
    "def launch(x, y):\n    k_0[(1,)](x, y)\n"
)
FUNCTION, METADATA, HOOKS = 4, 6, slice(6, 9)  # of what a launcher is given


@pytest.fixture
def chip(monkeypatch, tmp_path):
    """A GPU that is not here, as the one that Triton uses."""
    return installed(monkeypatch, tmp_path)


@pytest.fixture
def asked(monkeypatch):
    """The kernels that Triton's own way was taken for."""
    names, plain = [], JITFunction.run

    def run(self, *args, **options):
        names.append(self.__name__)
        return plain(self, *args, **options)

    monkeypatch.setattr(JITFunction, "run", run)
    monkeypatch.setattr(direct, "_RUN", run)
    return names


def tensors(*kinds):
    return [torch.zeros(shape, dtype=dtype) for shape, dtype in kinds]


def floats(count=2, at=0):
    """Tensors whose address is `at` elements behind a multiple of 16."""
    return [torch.zeros(8 * 8 + at)[at:].view(8, 8) for _ in range(count)]


def told(given):
    """What a launcher was given, as values."""
    return [
        value.data_ptr()
        if isinstance(value, torch.Tensor)
        else vars(value) | {"base": value.base.data_ptr()}
        if isinstance(value, TensorDescriptor)
        else value
        for value in given
    ]


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_a_launcher_is_given_what_the_ordinary_way_gives(name, alike, chip, asked):
    file, count = HERE / "golden" / f"{name}.py", 2 if name == "split_k" else 1
    launch = launcher(file, "time", alike)
    first, second = tensors(*KERNELS[name]), tensors(*KERNELS[name])
    launch(*first)
    assert len(asked) == count
    for each in (first, second):
        chip.launched.clear()
        launch(*each)
        assert len(asked) == count  # no more
        got = list(chip.launched)
        chip.launched.clear()
        module.Launcher._ordinary(launch, tuple(each))
        assert len(got) == len(chip.launched) == count
        for direct_one, ordinary in zip(got, chip.launched, strict=True):
            assert direct_one[HOOKS] == (None, None, None)
            assert not any(getattr(hook, "calls", hook) for hook in ordinary[HOOKS][1:])
            assert told(direct_one[:METADATA]) == told(ordinary[:METADATA])
            assert told(direct_one[HOOKS.stop :]) == told(ordinary[HOOKS.stop :])
            assert direct_one[5] is ordinary[5]
            boxes = [v for v in direct_one[HOOKS.stop :] if isinstance(v, TensorDescriptor)]
            assert len(boxes) == (2 if name == "eight_bulk" else 0)
        del asked[count:]


def test_a_tensor_that_no_descriptor_takes_is_refused_each_time(chip):
    launch, given = (
        launcher(HERE / "golden" / "eight_bulk.py", "time"),
        tensors(*KERNELS["eight_bulk"]),
    )
    moved = [torch.zeros(given[0].numel() + 8).to(EIGHT)[8:].view(given[0].shape), *given[1:]]
    for each in (given, moved, moved, given):
        chip.launched.clear()
        if each is given:
            launch(*each)
        else:
            with pytest.raises(AssertionError, match="aligned"):
                launch(*each)
        assert len(chip.launched) == (each is given)


def test_values_that_a_kernel_has_of_itself_are_given(chip, tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(DEFAULTS)
    launch, given = launcher(file, "time"), floats()
    launch(*given)
    launch(*given)
    ordinary, repeated = chip.launched
    assert repeated[HOOKS.stop + 2 :] == ordinary[HOOKS.stop + 2 :] == (3, 4, 2.5)
    assert repeated[:3] == ordinary[:3] == (2, 3, 1)


@pytest.mark.parametrize("alike", [False, True])
def test_tensors_that_lie_otherwise_take_other_code(chip, asked, alike):
    launch = launcher(SCALE, "time", alike)
    even, odd = floats(), floats(at=1)
    for given in (even, odd, even, odd, [even[0], odd[1]], even):
        launch(*given)
    functions = [given[FUNCTION] for given in chip.launched]
    assert functions[0] == functions[2] == functions[5]
    assert functions[1] == functions[3]
    assert len(set(functions)) == 3 and len(asked) == 3


def test_other_shapes_strides_and_dtypes_are_of_another_kind(chip, asked):
    launch, (x, y) = launcher(SCALE, "time"), floats()
    launch(x, y)
    others = (torch.zeros(8, 4), x[:4], torch.zeros(8, 16)[:, ::2], x.double())
    for n, other in enumerate(others, 2):
        launch(other, y)
        launch(other, y)
        assert len(asked) == n
    assert [given[0] for given in chip.launched] == [1] * 9


@pytest.mark.parametrize("alike", [False, True])
def test_each_device_has_its_own_function_and_each_stream_its_launches(chip, asked, alike):
    launch, given = launcher(SCALE, "time", alike), floats()
    for chip.device, chip.stream in ((0, 1), (1, 2), (0, 3), (1, 4), (0, 5)):
        launch(*given)
    assert len(asked) == 2
    assert [one[FUNCTION][1] for one in chip.launched] == [0, 1, 0, 1, 0]
    assert [one[3] for one in chip.launched] == [1, 102, 3, 104, 5]


@pytest.mark.parametrize("name", ["launch_enter_hook", "launch_exit_hook"])
def test_hooks_see_every_launch(name, chip, asked, monkeypatch):
    launch, given = launcher(SCALE, "time"), floats()
    launch(*given)
    seen, chain = [], getattr(knobs.runtime, name)
    chain.add(seen.append)
    try:
        launch(*given)
    finally:
        chain.remove(seen.append)
    _, (*_, enter, exit_) = chip.launched[0], chip.launched[1][HOOKS]
    assert chain in (enter, exit_)
    assert chip.launched[1][METADATA].get()["name"] == "scale_0" and len(asked) == 2
    launch(*given)
    assert len(asked) == 2
    monkeypatch.setattr(knobs.runtime, name, seen.append)  # as it may be set, too
    launch(*given)
    assert len(asked) == 3 and seen.append in chip.launched[3][HOOKS]


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        (knobs.runtime, "debug", True),
        (knobs.compilation, "instrumentation_mode", "consan"),
        (knobs.runtime, "add_stages_inspection_hook", lambda *_, **__: ("", "")),
    ],
)
def test_what_asks_for_other_code_gets_it(of, name, value, chip, monkeypatch):
    monkeypatch.setattr(of, name, value)
    assert not direct.unwatched()
    launch, given, own = launcher(SCALE, "time"), floats(), []
    monkeypatch.setattr(launch, "_ordinary", own.append)
    launch._direct[direct.kind(0, given)] = [lambda *_: pytest.fail("it was launched directly")]
    launch(*given)
    assert len(own) == 1


def test_who_takes_the_place_of_run_sees_every_launch(chip, monkeypatch):
    launch, given = launcher(SCALE, "time"), floats()
    launch(*given)
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(JITFunction, "run", lambda self, *_, **__: seen.append(self.__name__))
        launch(*given)
    assert seen == ["scale_0"] and len(chip.launched) == 1
    launch(*given)
    assert len(chip.launched) == 2


def test_who_took_the_place_of_run_before_sees_every_launch(monkeypatch):
    file, plain = direct.__file__, JITFunction.run
    assert runpy.run_path(file)["unwatched"]()
    monkeypatch.setattr(
        JITFunction, "run", lambda self, *args, **options: plain(self, *args, **options)
    )
    assert not runpy.run_path(file)["unwatched"]()


def test_a_launch_that_fails_says_so_each_time(chip, asked, monkeypatch):
    launch, given = launcher(SCALE, "time"), floats()

    def fails(*_):
        raise RuntimeError("invalid argument")

    monkeypatch.setattr(chip, "launcher_cls", lambda *_: fails)
    for n in (1, 2):
        with pytest.raises(RuntimeError, match="invalid argument"):
            launch(*given)
        assert len(asked) == n and not launch._direct  # nothing is kept of it
    fine, ready = launcher(SCALE, "time"), []
    monkeypatch.setattr(chip, "launcher_cls", lambda *_: lambda *given: ready[-1](*given))
    ready.append(lambda *_: None)
    fine(*given)
    ready.append(fails)
    with pytest.raises(RuntimeError, match="invalid argument"):
        fine(*given)
    ready.append(lambda *_: None)
    fine(*given)
    assert len(asked) == 3


def test_globals_that_change_are_still_an_error(chip, asked, tmp_path, monkeypatch):
    file = tmp_path / "kernel.py"
    file.write_text(GUARDED)
    launch, given = launcher(file, "time"), floats()
    launch(*given)
    launch(*given)
    assert len(asked) == 2
    monkeypatch.setattr(launch._module, "STEP", 3)
    with pytest.raises(RuntimeError, match="STEP has changed"):
        launch(*given)


def test_hooks_of_a_kernel_are_called_each_time(chip):
    launch, given, seen = launcher(SCALE, "time"), floats(), []
    launch._module.scale_0.pre_run_hooks.append(lambda *_, **__: seen.append(1))
    launch(*given)
    launch(*given)
    assert len(seen) == len(chip.launched) == 2


def test_a_hook_that_a_kernel_gets_later_is_called_too(chip):
    launch, given, seen = launcher(SCALE, "time"), floats(), []
    for _ in range(2):
        launch(*given)
    launch._module.scale_0.pre_run_hooks.append(lambda *_, **__: seen.append(1))
    launch(*given)
    assert len(seen) == 1 and len(chip.launched) == 3


def test_options_that_a_kernel_chooses_itself_are_chosen_each_time(chip, asked, tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(CHOOSES)
    launch, given = launcher(file, "time"), floats()
    for n in (1, 2, 3):
        launch(*given)
        assert len(asked) == len(chip.launched) == n
    assert chip.launched[2][HOOKS.stop + 2 :] == (4,)


def test_so_many_kinds_are_kept_and_no_more(chip, monkeypatch):
    monkeypatch.setattr(module, "_MOST_KNOWN", 1)
    launch, (x, y) = launcher(SCALE, "time"), floats()
    launch(x, y)
    launch(torch.zeros(8, 4), y)
    launch(torch.zeros(8, 4), y)
    assert len(launch._direct) == 1 and len(chip.launched) == 3


@pytest.mark.parametrize("target", [("cuda", 90, 32), ("hip", "gfx942", 64)])
def test_tensors_of_a_kind_are_specialised_alike(target, monkeypatch):
    monkeypatch.setattr(direct, "_RANGED", target[0] == "hip")
    backend, found = make_backend(GPUTarget(*target)), {}
    for dtype in (torch.float16, torch.bool, torch.int64, EIGHT):
        memory = torch.zeros(128, dtype=torch.uint8)
        for wide in (0, 2**31 if target[0] == "hip" else 0):
            # Of memory that is not touched there may be more than there is.
            held = torch.empty(128 + wide, dtype=torch.uint8) if wide else memory
            for at in (0, 8, 16, 24):
                view = held[at : at + 64].view(dtype)
                given = native_specialize_impl(backend, view, False, True, True)
                found.setdefault(direct.kind(0, [view]), set()).add(given)
    assert {len(given) for given in found.values()} == {1}
    assert len(found) == len(set.union(*found.values()))  # and no more kinds than that
