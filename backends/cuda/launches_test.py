"""Launches as data: what a judge reads of them without any code of a candidate."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import CASES, backend, nest_of
from backends.gpu import tile as of
from backends.gpu.source.launches import calls, constants, metadata, text, value
from backends.gpu.source.view import macros, shared_bytes
from backends.gpu.threads.constants import constants as values
from backends.gpu.threads.thread import All
from backends.gpu.tile import Name
from ir.sizes import bind
from ir.spec import Apply, Number, Size

H200 = machine_of("h200")


def test_a_launch_at_some_sizes():
    given = metadata(backend().program(backend().spelled(nest_of("rows")), H200))
    assert given["tensors"] == ["x", "y"]
    (call,) = calls(given, {"M": 10, "K": 1000})
    assert (call.name, call.grid, call.block, call.tensors) == ("row_softmax_0", 3, 128, (0, 1))
    assert call.arguments == (10, 1000)
    assert constants(given, {"M": 10, "K": 1000}) == {
        "EVEN_M": 0,
        "K_WIDTH": 1024,
        "EVEN_K": 0,
        "ALIGNED_X": 1,
    }


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("odd", [0, 1])
def test_texts_are_worth_what_the_program_says(name, odd):
    nest = backend().spelled(nest_of(name))
    program = backend().program(nest, H200)
    sizes = bind(nest.spec, {n: v + odd for n, v in nest.sizes})
    given = metadata(program)
    found = constants(given, sizes)
    for launch in program.launches:
        assert {**found, **macros(launch, sizes)}.items() >= {}.items()
        known = values(launch.constants, sizes)
        assert [found[n] for n in map(text, known)] == list(known.values())
        call = next(c for c in calls(given, sizes) if c.name == launch.name)
        assert call.shared == shared_bytes(launch, known)


def test_a_recurrence_has_a_launch_for_each_step():
    nest = backend().spelled(nest_of("recurrent"))
    program = backend().program(nest, H200)
    sizes = bind(nest.spec, dict(nest.sizes))
    repeat, launches = next(g for g in program.groups if g[0])
    made = [c for c in calls(metadata(program), sizes) if c.name == launches[0].name]
    assert [c.arguments[-1] for c in made] == list(repeat.steps(sizes))


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (of.Tiles(Size("M"), 64), 4),
        (of.BlockWidth(Size("M"), 16), 256),
        (of.Even(Size("M"), Number(64)), 0),
        (of.Even(Size("M"), Size("M")), 1),
        (of.Bits(Size("M")), 8),
        (All((of.Even(Size("M"), Number(2)), of.Even(Size("M"), Number(100)))), 1),
        (Apply("minimum", (Size("M"), Number(7))), 7),
        (Apply("floordiv", (Apply("sub", (Size("M"), Number(1))), Number(3))), 66),
    ],
)
def test_an_expression_is_the_same_as_text(expr, words):
    assert value(text(expr), {"M": 200}) == words


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os')",
        "M.real",
        "M ** 9999999",
        "[M for M in range(9)]",
        "N",
        "M // 0",
        "open('x')",
        "1.5",
        "'a'",
        "cdiv(M, 2, key=3)",
        "(lambda: 1)()",
        "M +",
    ],
)
def test_any_other_text_is_refused(source):
    with pytest.raises(BackendError, match="is no number of a launch"):
        value(source, {"M": 200})


def test_a_node_without_a_text_is_refused():
    with pytest.raises(BackendError, match="a Compute is no number"):
        text(of.Compute("exp", (Name("value", "x"),)))
