"""The language suite finds what is wrong: a right backend passes it, and each of many mutants, which
lacks one thing, fails in a case that is about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from backends.backend import BackendError, Built
from backends.manifest import FEATURES, Manifest
from backends.registry import REGISTRY, backend_names, target
from ir.contraction import indices
from ir.functions import POINTWISE, REDUCTIONS, SCANS
from ir.machine import Rendering
from ir.nest.nest import Load, Loop, LoopNest, Scan, Search, Statement, Store
from ir.reference.reference import evaluate
from ir.reference.rounding import round_to
from ir.spec import (
    Apply,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Number,
    Range,
    Read,
    Reduce,
    Spec,
)
from ir.spec import Scan as ScanExpr
from ir.visit import rebuilt
from testing.conformance.case import Case, language_problems
from testing.conformance.hostile import unadmitted
from testing.conformance.suite import language_cases, served

H200 = replace(target("h200"), rendering=Rendering())  # of a backend that renders all
(FOR_TESTS,) = set(backend_names(for_tests=True)) - set(backend_names())
EVERY_DTYPE = (
    "f64",
    "f32",
    "f16",
    "bf16",
    "f8e4m3",
    "f8e5m2",
    "f8e8m0",
    "i64",
    "i32",
    "i16",
    "i8",
    "u8",
    "b8",
)
Change = Callable[[Expr], Expr]


class Exact:
    """A right backend for any nest: it evaluates the nest's spec. change: what a mutant makes of its
    expressions.  output: what it makes of its results.  refuses: statements that it cannot emit."""

    def __init__(
        self,
        change: Change | None = None,
        output: Callable[[np.ndarray], np.ndarray] | None = None,
        lacks: Callable[[Statement], bool] | None = None,
        **manifest,
    ):
        given = REGISTRY.manifest(FOR_TESTS)
        self.manifest: Manifest = replace(given, dtypes=EVERY_DTYPE, **manifest)
        self.change, self.output, self.lacks = change, output, lacks

    def emit(self, nest: LoopNest, machine) -> str:
        """The kernel's name; BackendError where a statement is lacking."""
        for launch in nest.launches:
            for statement in launch.statements():
                if self.lacks and self.lacks(statement):
                    raise BackendError("emit", f"there is no {type(statement).__name__}")
        return nest.spec.name

    def build(self, source, nest, machine, folder) -> Built:
        """Nothing."""
        return Built(folder / "kernel.txt")

    def run(self, built, nest, machine, sizes, inputs) -> dict[str, np.ndarray]:
        """The spec's results in the spec's dtypes."""
        spec = changed(nest.spec, self.change) if self.change else nest.spec
        with np.errstate(all="ignore"):
            found = evaluate(spec, inputs, sizes)
        made = {t.name: round_to(found[t.name], t.dtype) for t in nest.spec.outputs}
        return {n: self.output(a) if self.output else a for n, a in made.items()}


def changed(spec: Spec, change: Change) -> Spec:
    """The spec with a change made wherever it applies."""

    def visit(expr: Expr) -> Expr:
        return change(rebuilt(expr, visit))

    made = tuple(
        replace(e, value=visit(e.value), at=e.at if e.accumulate else tuple(map(visit, e.at)))
        for e in spec.equations
    )
    return replace(spec, equations=made)


def problems(mutant: Exact, cases: tuple[Case, ...]) -> dict[str, list[str]]:
    """The cases in which a mutant is found, with what is wrong."""
    return dict(_problems(mutant, cases))


def is_found(mutant: Exact, cases: tuple[Case, ...]) -> bool:
    """Whether a mutant is found in any of the cases."""
    return any(True for _ in _problems(mutant, cases))


def _problems(mutant: Exact, cases: tuple[Case, ...]) -> Iterator[tuple[str, list[str]]]:
    for case in cases:
        try:
            wrong = list(language_problems(mutant, H200, case, Path("/nowhere")))
        except Exception as e:
            wrong = [repr(e)]
        if wrong:
            yield case.name, wrong


@cache
def cases() -> tuple[Case, ...]:
    """Those that are legal on the machine."""
    return tuple(c for c in language_cases().values() if served(c, H200))


def of(feature: str) -> tuple[Case, ...]:
    return tuple(c for c in cases() if feature in c.features)


def test_a_right_backend_passes_every_case():
    assert problems(Exact(), cases()) == {}


@pytest.mark.parametrize("feature", sorted(set(FEATURES) - {"names"}))
def test_each_feature_has_cases_and_what_refuses_it_unsaid_is_found(feature):
    cases = of(feature)
    assert cases

    class Refuses(Exact):
        def emit(self, nest, machine):
            raise BackendError("emit", "no")

    assert set(problems(Refuses(), cases)) == {c.name for c in cases}
    said = Refuses(refuses=(feature,))
    assert problems(said, cases) == {}
    lies = problems(Exact(refuses=(feature,)), cases)
    assert set(lies) == {c.name for c in cases}
    assert all("is refused, and a source was emitted" in p for ps in lies.values() for p in ps)


def indirect(at: Expr) -> bool:
    return any(isinstance(n, Read) for n in at.walk())


def to_first(expr: Expr) -> Expr:
    if isinstance(expr, Read):
        return replace(expr, at=tuple(Number(0) if indirect(p) else p for p in expr.at))
    return expr


def computed(at: Expr) -> bool:
    return any(isinstance(n, Apply) and n.function in ("mod", "floordiv") for n in at.walk())


def unshifted(expr: Expr) -> Expr:
    """Reads at the first index of each position: no window, no shift, nothing outside."""
    if isinstance(expr, Read) and expr.pad is not None and not any(map(indirect, expr.at)):
        first = tuple(next((n for n in p.walk() if n in inside(p)), p) for p in expr.at)
        return replace(expr, at=first)
    return expr


def inside(position: Expr) -> list[Expr]:
    return [n for n in position.walk() if indices(n) and not n.children().__length_hint__()]


def other_pad(expr: Expr) -> Expr:
    return replace(expr, pad=7.0) if isinstance(expr, Read) and expr.pad is not None else expr


def no_stride(expr: Expr) -> Expr:
    if isinstance(expr, Read):
        return replace(expr, at=tuple(drop_stride(p) for p in expr.at))
    return expr


def drop_stride(expr: Expr) -> Expr:
    if isinstance(expr, Apply) and expr.function == "mul" and Number(2) in expr.args:
        return next(a for a in expr.args if a != Number(2))
    return rebuilt(expr, drop_stride)


def no_scan(expr: Expr) -> Expr:
    return expr.body if isinstance(expr, ScanExpr) else expr


def forgets(**flags) -> Change:
    return lambda e: replace(e, **flags) if isinstance(e, ScanExpr) else e


def empty_range(expr: Expr) -> Expr:
    return replace(expr, high=expr.low) if isinstance(expr, Range) and expr.jagged else expr


def whole_range(expr: Expr) -> Expr:
    if not isinstance(expr, Reduce):
        return expr
    return replace(expr, ranges=tuple(r for r in expr.ranges if not r.partial))


def off_by_one(expr: Expr) -> Expr:
    return Apply("add", (expr, Number(1))) if isinstance(expr, Bucketize) else expr


def no_state(expr: Expr) -> Expr:
    """Every step is the first one."""
    if isinstance(expr, Read) and expr.pad is not None and expr.tensor in ("h", "s", "c"):
        return Number(expr.pad)
    return expr


def rounds(expr: Expr) -> Expr:
    if isinstance(expr, Cast) and expr.dtype.startswith(("i", "u")):
        return replace(expr, value=Apply("round", (expr.value,)))
    return expr


LACKING = {  # a change, and the feature in whose cases it must be found
    "gathers": (to_first, "gather"),
    "windows": (unshifted, "window"),
    "what is outside": (other_pad, "window"),
    "strides": (no_stride, "window"),
    "scans": (no_scan, "scan"),
    "reverse": (forgets(reverse=False), "scan"),
    "exclusive": (forgets(exclusive=False), "scan"),
    "ranges": (empty_range, "jagged"),
    "parts of ranges": (whole_range, "jagged"),
    "searches": (off_by_one, "search"),
    "state": (no_state, "recurrence"),
    "casts": (rounds, "integer"),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_a_backend_that_lacks_it_is_found(lacking):
    change, feature = LACKING[lacking]
    assert is_found(Exact(change), of(feature))


def test_a_backend_that_adds_updates_no_more_than_once_is_found():
    class Overwrites(Exact):
        def run(self, built, nest, machine, sizes, inputs):
            equations = tuple(kept(e) for e in nest.spec.equations)
            spec = replace(nest.spec, equations=equations)
            return super().run(built, replace(nest, spec=spec), machine, sizes, inputs)

    def kept(e: Equation) -> Equation:
        return replace(e, value=Apply("mul", (e.value, Number(0)))) if e.accumulate else e

    for feature in ("scatter", "atomic"):
        assert set(problems(Overwrites(), of(feature))) == {c.name for c in of(feature)}


def wrong_function(name: str) -> Change:
    """A function that is off by one, says the opposite, or halves what it draws."""

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Apply) or expr.function != name:
            return expr
        kind = POINTWISE[name].kind
        if kind in ("compare", "test"):
            return Apply("not", (expr,))
        if kind == "logic":
            return Apply("xor", (expr, Apply("eq", (Number(1), Number(1)))))
        if kind == "random":
            return Apply("mul", (expr, Number(0.5)))
        return Apply("add", (expr, Number(1)))

    return change


@pytest.mark.parametrize("name", POINTWISE)
def test_a_backend_with_a_wrong_function_is_found(name):
    assert is_found(Exact(wrong_function(name)), (*of("function"), *of("integer")))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_backend_with_a_wrong_reduction_is_found(name):
    others = dict(zip(REDUCTIONS, ("max", "min", "max", "sum", "all", "any", "argmin", "argmax")))

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Reduce) and expr.reduction == name:
            return replace(expr, reduction=others[name])
        return expr

    assert is_found(Exact(change), of("reduction"))


@pytest.mark.parametrize("scan", SCANS)
def test_a_backend_with_a_wrong_scan_is_found(scan):
    other = {"sum": "max", "prod": "sum", "max": "min", "min": "max"}

    def change(expr: Expr) -> Expr:
        if isinstance(expr, ScanExpr) and expr.reduction == SCANS[scan]:
            return replace(expr, reduction=other[expr.reduction])
        return expr

    assert is_found(Exact(change), of("scan"))


def lost_nan(array: np.ndarray) -> np.ndarray:
    return (
        np.nan_to_num(array, nan=0.0, posinf=np.inf, neginf=-np.inf) if is_float(array) else array
    )


def lost_infinity(array: np.ndarray) -> np.ndarray:
    most = np.finfo(array.dtype).max if is_float(array) else 0
    return np.where(np.isinf(array), np.sign(array) * most, array) if is_float(array) else array


def flushed(array: np.ndarray) -> np.ndarray:
    return (
        np.where(np.abs(array) < 1e-15, 0, array).astype(array.dtype) if is_float(array) else array
    )


def is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


@pytest.mark.parametrize("output", [lost_nan, lost_infinity, flushed])
def test_a_backend_that_is_wrong_at_the_edges_alone_is_found(output):
    found = problems(Exact(output=output), of("function"))
    assert {"functions of f32", "functions of bf16"} <= set(found)
    if output is not flushed:
        rows = tuple(c for c in language_cases().values() if c.name.startswith("special rows"))
        assert problems(Exact(output=output), rows)


LACKED = {
    "scans": (lambda s: isinstance(s, Scan), "scan"),
    "gathers": (
        lambda s: isinstance(s, Load) and any(one.rows for one in s.region),
        "gather",
    ),
    "windows": (
        lambda s: isinstance(s, Load) and any(len(o.terms) > 1 or o.step > 1 for o in s.region),
        "window",
    ),
    "atomics": (lambda s: isinstance(s, Store) and bool(s.reduction), "atomic"),
    "searches": (lambda s: isinstance(s, Search), "search"),
    "ranges": (lambda s: isinstance(s, Loop) and bool(s.low.tensor), "jagged"),
    "bulk copies": (lambda s: isinstance(s, Load) and s.bulk, "staging"),
    "broadcasts": (lambda s: isinstance(s, Load) and bool(s.shared), "staging"),
}


@pytest.mark.parametrize("lacking", LACKED)
def test_a_backend_that_cannot_emit_it_is_found(lacking):
    lacks, feature = LACKED[lacking]
    found = problems(Exact(lacks=lacks), of(feature))
    assert found and all("there is no" in p for ps in found.values() for p in ps)


def test_a_dtype_that_is_taken_without_being_held_is_found():
    mutant = Exact()
    mutant.manifest = replace(mutant.manifest, dtypes=("f32",))
    found = problems(mutant, of("function"))
    assert any(re.search("f64 is refused, and a source was emitted", p[0]) for p in found.values())


def test_an_output_that_is_lacking_is_found():
    class Forgets(Exact):
        def run(self, *given):
            found = super().run(*given)
            return dict(tuple(found.items())[1:])

    found = problems(Forgets(), of("search"))
    assert all("there is no output" in ps[0] for ps in found.values()) and found


class Admitting(Exact):
    """Admits what its `admits` says."""

    def __init__(self, admits):
        super().__init__()
        self.admits = admits

    def admit(self, source):
        if not self.admits(source):
            raise BackendError("build", "it is more than a kernel")


@pytest.mark.parametrize(
    "backend, found",
    [
        (Exact(), ["it has no `admit`"]),
        (Admitting(lambda source: True), ["a cast: it is admitted"]),
        (
            Admitting(lambda source: False),
            ["what it emits is not admitted: it is more than a kernel"],
        ),
        (Admitting(lambda source: "cast" not in source), []),
    ],
    ids=["none", "all", "nothing", "kernels"],
)
def test_admission_takes_what_is_emitted_and_refuses_what_reaches_beyond(backend, found):
    assert list(unadmitted(backend, "kernel", {"a cast": "kernel with a cast"})) == found
