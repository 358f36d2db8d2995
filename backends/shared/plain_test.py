"""A language of the shared parts alone: C++ without threads, hints or a microkernel. It shows what a
language has to add, and that the shared parts are right without what any backend adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from backends.emit import TEMPLATES
from backends.measure import check
from backends.registry import REGISTRY, target
from backends.shared.compiler import Compiler
from backends.shared.expressions import Operation
from backends.shared.host import Host
from backends.shared.loops import Assign, Elements, Loops, computed_dtype, over
from backends.shared.names import Names
from backends.shared.words import RESERVED
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Dot, Fill, Loop, Statement
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY
from testing.conformance.hostile import passing, reaching_sources
from testing.conformance.suite import language_cases
from testing.samples.samples import decisions

MACHINE = target("cpu")
KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))
TEMPLATE = """
{% from "c/launch.j2" import arrays, grid, header, sizes, tile, whole %}
{% from "c/loops.j2" import block %}
{{ header(nest, digests) }}
#include "arena.h"
{% for launch in launches %}
KERNEL({{ launch.name }}) {
{{ sizes(launch) -}}
{{ grid(launch) -}}
{{ whole(launch) -}}
{{ arrays(launch, 1) -}}
{{ "  " }}const bool first = true;
{{ block(launch.once, 1) -}}
{{ "  " }}for (Index tile = 0; tile < count; ++tile) {
{{ tile(launch, 2, false) -}}
{{ block(launch.body, 2) -}}
{{ "  " }}}
}
{% endfor %}
"""


class Statements(Loops):
    """Loops, and matmuls as loops."""

    def nodes(self, s: Statement, once: bool) -> Iterator[object]:
        if not isinstance(s, Dot):
            yield from super().nodes(s, once)
            return
        if not s.accumulate:
            yield from super().nodes(Fill(s.value, 0.0), once)
        to, dtype = self.element(s.value), computed_dtype(self.values[s.value].dtype)
        product = Operation("mul", (self.computed(s.a, dtype), self.computed(s.b, dtype)))
        yield Elements(over((*self.values[s.value].names, *s.over)), (Assign(to, product, True),))


class Plain(Host):
    """The language."""

    names = Names(
        RESERVED,
        macros=re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT|SIZE|EXIT|RAND|MB)\w*|W[A-Z]+"),
        made=re.compile(r"_.*|.*__.*|.*_"),
        endings=("t", "g", "i", "at", "n", "tiles", "low", "high"),
        function="_launch",
    )
    statements = Statements
    compiler = Compiler("g++", ("-std=c++20", "-O1", "-fwrapv", "-shared", "-fPIC"))
    # emitted sources are not edited here; a real backend needs an admission
    admit = staticmethod(str)


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "kernel.cc.j2").write_text(TEMPLATE)
    (tmp_path / "c").symlink_to(TEMPLATES / "c")
    return Plain(replace(REGISTRY.manifest("cpp"), name="plain"), tmp_path)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_of_the_library_is_right(kernel, plain, tmp_path):
    w = parse_workload((LIBRARY / f"{kernel}.kir").read_text())
    nest = lower(w.spec, autoschedule(w.spec, MACHINE, w.tune), MACHINE, w.tune)
    built = plain.build(plain.emit(nest, MACHINE), nest, MACHINE, tmp_path)
    for sizes in w.checks[:2]:
        check(plain, built, nest, MACHINE, w.spec, sizes, seed=5)


def test_loops_run_from_the_last_tile_to_the_first(plain, tmp_path):
    """No machine of this class has a decision for it, so the loops are reversed here."""
    case = language_cases()["a maximum over ranges of data"]
    w = case.workload
    lines = ("tile(b, size=1)", "tile(l, size=8)", "place(b.outer, level=grid)")
    nest = lower(w.spec, decisions(w.spec, *lines), MACHINE, w.checks[0])
    launches = tuple(replace(la, body=_backwards(la.body)) for la in nest.launches)
    back = replace(nest, launches=launches)
    source = plain.emit(back, MACHINE)
    assert source != plain.emit(nest, MACHINE) and "l_at -= 8" in source
    built = plain.build(source, back, MACHINE, tmp_path)
    check(plain, built, back, MACHINE, w.spec, w.checks[0], seed=5)


def _backwards(block):
    return tuple(
        replace(s, backwards=True, body=_backwards(s.body)) if isinstance(s, Loop) else s
        for s in block
    )


def test_a_backend_that_admits_everything_is_found(plain, tmp_path):
    """Without the admission, sources that reach beyond their kernels would compile with right
    results."""
    case = language_cases()["several launches"]
    reaching = reaching_sources(plain.emit(case.nest(MACHINE), MACHINE))
    (tmp_path / "built").mkdir()
    found = list(passing(plain, MACHINE, case, reaching, tmp_path / "built"))
    assert len(reaching) > 10
    assert found == [f"{name}: it was built, and its results are right" for name in reaching]
