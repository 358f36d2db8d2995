"""What the template is given, and files that are Python whatever a spec says."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.registry import target
from backends.triton.emit.spelling import templates
from backends.triton.emit.view import kernel_view
from backends.triton.rules import RULES
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from testing.samples.samples import decisions, spec_of

H200 = target("h200")
PRODUCT = spec_of(
    "acc[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: f16[M, K], w: f16[K, N]",
    result="f16[M, N]",
)
TILES = (
    "tile(m, size=64)",
    "tile(n, size=64)",
    "tile(k, size=32)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)


def nest(spec, *lines, **sizes) -> LoopNest:
    return lower(spec, decisions(spec, *lines), H200, sizes or dict(M=256, N=256, K=256))


def launches(made: LoopNest):
    return kernel_view(made, H200)["program"].launches


def text(made: LoopNest) -> str:
    return templates().render("kernel.py.j2", **kernel_view(made, H200))


@pytest.mark.parametrize(
    "doc",
    ['ends with "', 'has """ in it', "ends with a \\", "\\x00 and \\N{dash}", "a\nb\tc\r\x0c"],
)
def test_any_doc_is_one_line_of_the_file(doc):
    made = nest(PRODUCT, *TILES)
    made = replace(made, spec=replace(made.spec, doc=doc))
    tree = ast.parse(text(made))
    said = "".join(c if c.isprintable() else " " for c in doc)
    assert ast.get_docstring(tree).splitlines()[0] == f"f: {said}"
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "f")
    assert ast.get_docstring(function, clean=False) == said


def test_the_functions_of_a_file():
    tree = ast.parse(text(nest(PRODUCT, *TILES, "kernel(acc)")))
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    assert [f.name for f in functions] == ["f_0", "f_1", "launch", "_require", "f"]
    assert [a.arg for a in functions[2].args.args] == ["x", "w", "acc", "y"]
    assert [a.arg for a in functions[4].args.args] == ["x", "w"]


def test_only_what_is_used_is_passed():
    """A size or a constant that no line reads would be compiled for in vain."""
    tree = ast.parse(text(nest(PRODUCT, *TILES)))
    kernel = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    read = {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name)}
    assert {a.arg for a in kernel.args.args} <= read


@pytest.mark.parametrize(("threads", "warps"), [(0, RULES.warps), (64, 2), (256, 8)])
def test_warps_are_threads_by_waves(threads, warps):
    given = (f"threads(y, count={threads})",) if threads else ()
    (launch,) = launches(nest(PRODUCT, *TILES, *given))
    assert launch.warps == warps


def test_a_launch_has_the_stages_of_its_loop():
    (launch,) = launches(nest(PRODUCT, *TILES, "pipeline(x, stages=4)"))
    assert launch.stages == 4
    with pytest.raises(KernelError, match="`x` has 4 pipeline stages and `w` 2 in the loop over"):
        nest(PRODUCT, *TILES, "pipeline(x, stages=4)", "pipeline(w, stages=2)")
    (launch,) = launches(nest(PRODUCT, *TILES))
    assert launch.stages == 1


def test_a_persistent_launch_has_a_program_for_each_processor():
    made = nest(PRODUCT, *TILES, "persistent(y, programs=2)")
    (launch,) = launches(made)
    assert launch.resident == 2 * H200.parallel
    assert f", {2 * H200.parallel}),)](" in text(made)


@pytest.mark.parametrize(
    ("target_name", "limit", "option"),
    [("h200", 96, "maxnreg=96"), ("mi300", 96, "waves_per_eu=5")],
)
def test_a_limit_of_registers_is_an_option_of_the_launch(target_name, limit, option):
    machine = target(target_name)
    line = f"registers(y, limit={limit})"
    made = lower(PRODUCT, decisions(PRODUCT, *TILES, line), machine, dict(M=256, N=256, K=256))
    assert f"        {option},\n" in templates().render(
        "kernel.py.j2", **kernel_view(made, machine)
    )


def test_a_specialized_launch_has_its_sizes_as_constants():
    sizes = dict(M=200, N=72, K=40)
    plain, special = (
        text(nest(PRODUCT, *TILES, *more, **sizes)) for more in ((), ("specialize(y)",))
    )
    for size in sizes:
        assert f"    {size}: tl.constexpr,\n" in special and f" {size}: tl" not in plain
    assert "        M, K, N,\n" in special and "    M, K, N,\n" in plain


def test_a_text_is_the_same_each_time():
    made = nest(PRODUCT, *TILES)
    assert text(made) == text(made)


def test_no_line_of_a_body_is_longer_than_it_need_be():
    lines = text(nest(PRODUCT, *TILES)).splitlines()
    calls = [line for line in lines if "tl.load(" in line or "tl.store(" in line]
    assert calls and all(len(line) <= 100 for line in calls)


@pytest.mark.parametrize(("dtype", "described"), [("b8", False), ("u8", True)])
def test_truth_values_are_not_moved_in_bulk(dtype, described):
    spec = spec_of("y[m, k] = c[m, k]", inputs=f"c: {dtype}[M, K]", result=f"{dtype}[M, K]")
    lines = ("tile(m, size=4)", "tile(k, size=64)", "place(m.outer, level=grid)")
    made = nest(spec, *lines, "copy(y, by=bulk)", M=64, K=128)
    if described:
        assert any(one.descriptors for one in launches(made))
        return
    with pytest.raises(BackendError, match="`y` cannot be moved in bulk: it holds truth values"):
        launches(made)
