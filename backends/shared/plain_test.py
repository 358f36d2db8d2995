"""A language of the shared parts alone: C++ without threads, hints or a microkernel. It shows what a
language has to add, and that the shared parts are right without what any backend adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.emit import TEMPLATES, Templates
from backends.measure import check
from backends.registry import target
from backends.shared.arrays import placed, results
from backends.shared.compiler import Compiler
from backends.shared.expressions import Operation
from backends.shared.library import launches
from backends.shared.loops import Assign, Elements, Loops, computed_dtype, over
from backends.shared.names import Names
from backends.shared.view import kernel_view
from backends.shared.words import RESERVED
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Dot, Fill, Statement
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY

MACHINE = target("cpu")
KERNELS = sorted(p.stem for p in LIBRARY.glob("*.kir"))
PRELUDE = Path(__file__).parent / "prelude"
COMPILER = Compiler("g++", ("-std=c++20", "-O1", "-fwrapv", "-shared", "-fPIC"))
NAMES = Names(
    RESERVED | {"scratch"},
    macros=re.compile(r"[A-Z]+_\w*"),
    made=re.compile(r"_.*|.*__.*|.*_"),
    endings=("t", "g", "i", "at", "n", "tiles", "low", "high"),
    function="_launch",
)
TEMPLATE = """
{% from "c/expressions.j2" import TYPES %}
{% from "c/launch.j2" import grid, header, sizes, tile, whole %}
{% from "c/loops.j2" import block %}
{{ header(nest, digests) }}
#include "scratch.h"
{% for launch in launches %}
KERNEL({{ launch.name }}) {
{{ sizes(launch) -}}
{{ grid(launch) -}}
{{ whole(launch) -}}
{{ "  " }}const bool first = true;
{{ "  " }}Scratch scratch;
{% for name, dtype in launch.tensors %}
  const Array<{{ TYPES[dtype] }}> {{ name }}_g = args.array<{{ TYPES[dtype] }}>({{ loop.index0 }});
{% endfor %}
{% for name, dtype, count in launch.held %}
  const Array<{{ TYPES[dtype] }}> {{ name }}_t = scratch.take<{{ TYPES[dtype] }}>({{ count }});
{% endfor %}
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


class Plain:
    """The language."""

    def __init__(self, folder: Path):
        (folder / "plain").mkdir()
        (folder / "plain" / "kernel.cc.j2").write_text(TEMPLATE)
        (folder / "c").symlink_to(TEMPLATES / "c")
        self.templates = Templates("plain", folder=folder)

    def emit(self, nest):
        return self.templates.render("kernel.cc.j2", **kernel_view(nest, NAMES, self._launch))

    def build(self, nest, folder):
        return COMPILER.build(self.emit(nest), folder, "kernel.cc", (PRELUDE,))

    def run(self, built, nest, machine, sizes, inputs):
        buffers = placed(nest, sizes, inputs)
        for _, launch in launches(built, NAMES, nest, sizes, buffers, threads=1):
            launch()
        return results(nest, buffers, inputs)

    @staticmethod
    def _launch(launch):
        statements = Statements(launch)
        held = (
            (
                v.name,
                v.dtype,
                " * ".join(f"({n})" for n in statements.extents(v.name).values()) or 1,
            )
            for v in launch.values
        )
        return {
            "held": list(held),
            "once": statements.block(launch.once, once=True),
            "body": statements.block(launch.body),
        }


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_of_the_library_is_right(kernel, tmp_path):
    w = parse_workload((LIBRARY / f"{kernel}.kir").read_text())
    nest = lower(w.spec, autoschedule(w.spec, MACHINE, w.tune), MACHINE, w.tune)
    plain = Plain(tmp_path)
    built = plain.build(nest, tmp_path)
    for sizes in w.checks[:2]:
        check(plain, built, nest, MACHINE, w.spec, sizes, seed=5)
