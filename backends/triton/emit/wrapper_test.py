"""The function named after a kernel refuses every input that the kernel is not built for."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.device.tensors import DTYPES
from backends.registry import target
from backends.triton.build.admission import require_admissible
from backends.triton.build.module import load
from backends.triton.testing.walks import emitted
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.sizes import bind, free_sizes, shape, value
from ir.spec import Size, Spec
from testing.samples.samples import KERNELS, spec_of, workload

H200 = target("h200")
SPECS = {
    "literal": spec_of(
        "y[m, n] = x[m, n] * w[n]", inputs="x: f32[6, 4], w: f32[4]", result="f32[6, 4]"
    ),
    "told_later": spec_of(
        "y[m, n] = x[m * N + n] * w[m, n]", inputs="x: f32[M * N], w: f32[M, N]", result="f32[M, N]"
    ),
    "square": spec_of("y[m, n] = x[m, n] + x[n, m]", inputs="x: f32[M, M]", result="f32[M, M]"),
    "derived": spec_of(
        "y[p] = x[2 * p] * w[p]", inputs="x: f32[N], w: f32[P], P=(N - 1) // 2 + 1", result="f32[P]"
    ),
    "asked": parse_spec(
        'def f(g: f32[L, D], idx: i32[L]) -> f32[V, D]:\n    """Rows by their places."""\n'
        "    y[v, d] = sum(where(idx[n] == v, g[n, d], 0.0), n)\n    return y\n"
    ),
}
NAMES = (*KERNELS, *SPECS)


def spec_named(name: str) -> Spec:
    return SPECS[name] if name in SPECS else workload(name).spec


def source(name: str, folder: Path) -> Path:
    """The file of a kernel's plain schedule."""
    spec = spec_named(name)
    sizes = dict.fromkeys(free_sizes(spec), 5)
    return emitted(lower(spec, plain(spec, H200, sizes), H200, sizes), H200, folder).file


@pytest.fixture(scope="module")
def module_of(tmp_path_factory):
    """The module of a kernel, which notes what it would launch."""

    @cache
    def make(name: str) -> ModuleType:
        module = load(source(name, tmp_path_factory.mktemp(name)), "build")
        module.launched = []
        module.launch = lambda *tensors: module.launched.append(tensors)
        return module

    return make


def inputs(spec: Spec, sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    bound = bind(spec, sizes)
    return {t.name: torch.empty(shape(t, bound), dtype=DTYPES[t.dtype]) for t in spec.inputs}


def fits(spec: Spec, tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether any sizes give these shapes: by trying."""
    dims = [
        (e, n) for t in spec.inputs for e, n in zip(t.shape, tensors[t.name].shape, strict=True)
    ]
    near = {n + by for _, n in dims for by in (-1, 0, 1) if n + by >= 0}
    free = [n for n in free_sizes(spec) if any(_names(e, spec) & {n} for e, _ in dims)]
    for numbers in itertools.product(near, repeat=len(free)):
        sizes = dict(zip(free, numbers, strict=True))
        for name, expr in spec.derived:
            if _names(expr, spec) <= set(sizes):
                sizes[name] = value(expr, sizes)
        if all(value(e, sizes) == n for e, n in dims):
            return True
    return False


def _names(expr, spec: Spec) -> set[str]:
    """The free sizes in an expression."""
    derived = dict(spec.derived)
    return {
        name
        for s in expr.walk()
        if isinstance(s, Size)
        for name in (_names(derived[s.name], spec) if s.name in derived else {s.name})
    }


def call(module: ModuleType, spec: Spec, tensors: Mapping[str, object]) -> object:
    told = {n for t in spec.inputs for e in t.shape for n in _names(e, spec)}
    asked = [5 for name in free_sizes(spec) if name not in told]
    return getattr(module, spec.name)(*tensors.values(), *asked)


SIZES = st.lists(st.integers(2, 4), min_size=5, max_size=5)


def drawn(spec: Spec, numbers: list[int]) -> dict[str, torch.Tensor]:
    return inputs(spec, dict(zip(free_sizes(spec), numbers, strict=False)))


WRONG = {
    "dtype": lambda t: t.to(torch.float64 if t.dtype != torch.float64 else torch.float32),
    "more dimensions": lambda t: t.unsqueeze(0),
    "fewer dimensions": lambda t: t[0],
    "order": lambda t: torch.stack([t, t], -1)[..., 0],
    "no tensor": lambda t: t.tolist(),
    "an array": lambda t: t.float().numpy(),
}


@pytest.mark.parametrize("name", NAMES)
@given(numbers=SIZES, wrong=st.sampled_from(sorted(WRONG)), data=st.data())
def test_an_input_of_another_sort_is_refused(module_of, name, numbers, wrong, data):
    spec, module = spec_named(name), module_of(name)
    tensors = drawn(spec, numbers)
    module.launched.clear()
    call(module, spec, tensors)
    assert len(module.launched) == 1
    one = data.draw(st.sampled_from(sorted(tensors)))
    with pytest.raises((ValueError, TypeError), match=f"`{one}` .*; allowed: "):
        call(module, spec, tensors | {one: WRONG[wrong](tensors[one])})
    assert len(module.launched) == 1


@pytest.mark.parametrize("name", NAMES)
@given(numbers=SIZES, by=st.sampled_from([-2, -1, 1, 2]), data=st.data())
def test_sizes_that_do_not_agree_are_refused_and_no_others(module_of, name, numbers, by, data):
    spec, module = spec_named(name), module_of(name)
    tensors = drawn(spec, numbers)
    one = data.draw(st.sampled_from(sorted(tensors)))
    dim = data.draw(st.integers(0, tensors[one].ndim - 1))
    sizes = list(tensors[one].shape)
    sizes[dim] = max(0, sizes[dim] + by)
    tensors[one] = torch.empty(sizes, dtype=tensors[one].dtype)
    module.launched.clear()
    if fits(spec, tensors):
        call(module, spec, tensors)
        assert len(module.launched) == 1
    else:
        with pytest.raises(ValueError, match="; allowed: |too short"):
            call(module, spec, tensors)
        assert not module.launched


@pytest.mark.parametrize("name", NAMES)
def test_an_input_on_another_device_is_refused(module_of, name):
    spec, module = spec_named(name), module_of(name)
    tensors = drawn(spec, [3] * 5)
    for one in tensors if len(tensors) > 1 else ():
        with pytest.raises(ValueError, match=r"` is on (meta|cpu); allowed: (cpu|meta)"):
            call(module, spec, tensors | {one: tensors[one].to("meta")})
    call(module, spec, {n: t.to("meta") for n, t in tensors.items()})


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_refused_where_they_would_be_lost(module_of, name):
    spec, module = spec_named(name), module_of(name)
    tensors = drawn(spec, [3] * 5)
    for one in (n for n, t in tensors.items() if t.is_floating_point()):
        asking = tensors | {one: tensors[one].clone().requires_grad_()}
        with pytest.raises(ValueError, match=f"`{one}` requires gradients, .*no_grad"):
            call(module, spec, asking)
        for without in (torch.no_grad, torch.inference_mode):
            with without():
                call(module, spec, asking)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_its_checks_is_admitted(name, tmp_path):
    require_admissible(source(name, tmp_path).read_text())


def lines(name: str, folder: Path) -> list[str]:
    text = source(name, folder).read_text()
    return text[text.index(f"\ndef {spec_named(name).name}(") :].splitlines()[3:]


def test_each_tensor_is_one_line_and_sizes_are_read_once(tmp_path):
    assert lines("attention", tmp_path)[:6] == [
        '    _require("q", q, torch.bfloat16, ("H", "M", "D"), q)',
        "    H = q.shape[0]",
        "    M = q.shape[1]",
        "    D = q.shape[2]",
        '    _require("k", k, torch.bfloat16, (H, "N", D), q)',
        "    N = k.shape[1]",
    ]


def test_an_input_whose_sizes_another_one_tells_is_checked_again(tmp_path):
    assert lines("told_later", tmp_path)[:5] == [
        '    _require("x", x, torch.float32, ("M * N",), x)',
        '    _require("w", w, torch.float32, ("M", "N"), x)',
        "    M = w.shape[0]",
        "    N = w.shape[1]",
        '    _require("x", x, torch.float32, (M * N,), x)',
    ]


def test_literal_sizes_are_numbers(tmp_path):
    assert '    _require("w", w, torch.float32, (4,), x)' in lines("literal", tmp_path)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (
            {"q": (2, 5, 16), "k": (2, 7, 8), "v": (2, 7, 8)},
            "`k` is torch.bfloat16[2, 7, 8]; allowed: torch.bfloat16[2, N, 16]",
        ),
        (
            {"q": (5, 16), "k": (7, 16), "v": (7, 16)},
            "`q` is torch.bfloat16[5, 16]; allowed: torch.bfloat16[H, M, D]",
        ),
        (
            {"q": (2, 5, 16), "k": (2, 7, 16), "v": (2, 9, 16)},
            "`v` is torch.bfloat16[2, 9, 16]; allowed: torch.bfloat16[2, 7, 16]",
        ),
    ],
)
def test_the_message_says_what_it_is_and_what_is_allowed(module_of, sizes, words):
    given = {name: torch.empty(s, dtype=torch.bfloat16) for name, s in sizes.items()}
    with pytest.raises(ValueError) as caught:
        module_of("attention").attention(**given)
    assert str(caught.value) == words


def test_offsets_without_an_element_tell_no_count(module_of):
    tensors = drawn(spec_named("embedding_bag"), [3] * 5)
    tensors["offsets"] = tensors["offsets"][:0]
    with pytest.raises(ValueError, match="`offsets` is too short: it tells B = -1"):
        module_of("embedding_bag").embedding_bag(**tensors)


INTERPRETED = """
import torch
from torch.nn.functional import conv1d, embedding_bag, scaled_dot_product_attention
import attention_file, conv1d_file, embedding_bag_file, softmax_file

def refused(call, *tensors):
    try:
        call(*tensors)
    except ValueError as error:
        return "allowed" in str(error)

def agree(found, expected):
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)

x = torch.randn(3, 33)
agree(softmax_file.softmax(x), torch.softmax(x, 1))
assert refused(softmax_file.softmax, torch.randn(2, 8, 33))
q, k, v = (torch.randn(2, n, 16).bfloat16() for n in (5, 7, 7))
agree(attention_file.attention(q, k, v), scaled_dot_product_attention(q, k, v))
assert refused(attention_file.attention, q, k[..., :8].contiguous(), v)
x, w, b = torch.randn(2, 3, 9).half(), torch.randn(4, 3, 3).half(), torch.randn(4).half()
agree(conv1d_file.conv1d(x, w, b), conv1d(x, w, b, padding=1))
assert refused(conv1d_file.conv1d, x, torch.randn(4, 3, 5).half(), b)
table, at = torch.randn(9, 4), torch.randint(9, (6,), dtype=torch.int32)
bags = torch.tensor([0, 2, 2, 6], dtype=torch.int32)
expected = embedding_bag(at, table, bags, mode="sum", include_last_offset=True)
agree(embedding_bag_file.embedding_bag(table, at, bags), expected)
assert refused(embedding_bag_file.embedding_bag, table, at.long(), bags)
"""


def test_emitted_files_alone_compute_and_refuse_by_tritons_interpreter(tmp_path):
    for name in ("attention", "conv1d", "embedding_bag", "softmax"):
        source(name, tmp_path).rename(tmp_path / f"{name}_file.py")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)  # as far from the project as a user's own program
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


PART = parse_spec(
    'def f(x: f32[M, 24]) -> (f32[M, part(24, first=16, of=48)], f32[M]):\n    """Twice, and sums."""\n'
    "    y[m, n] = x[m, n] * 2.0\n    s[m] = sum(x[m, n], n)\n    return y, s\n"
)


def test_what_a_part_is_stored_to_is_given_and_checked(module_of, monkeypatch):
    monkeypatch.setitem(SPECS, "part", PART)
    module = module_of("part")
    x, whole = torch.zeros(5, 24), torch.zeros(5, 48)
    y, s = module.f(x, whole)
    assert y is whole and s.shape == (5,) and len(module.launched) == 1
    for wrong in (
        whole[:, :47].contiguous(),
        whole[1:],
        whole.double(),
        whole.t().contiguous().t(),
    ):
        with pytest.raises(ValueError, match="`y` .*; allowed: "):
            module.f(x, wrong)
