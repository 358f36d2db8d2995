"""Facts: which axes are distributed alike, what goes past the registers, what a matmul is made of."""

from dataclasses import replace

from backends.gpu.plain_rules import RULES
from backends.gpu.program import tile_program
from backends.gpu.threads.facts import facts
from backends.gpu.threads.inline import inlined
from backends.gpu.tile import Assign, Load, Name, expressions, statements
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

GRID = ("tile(m, size=16)", "place(m.outer, level=grid)")
LOOP = ("tile(k, size=16)", "place(k.outer, level=loop)", "compute(y, unit=matrix)")
SIZES = dict(M=64, K=64)


MATMUL = dict(inputs="x: f16[M, K], w: f16[K, N]", result="f32[M, N]")


def known(*equations, more=(), sizes=SIZES, **kwargs):
    spec = spec_of(*equations, **kwargs)
    nest = lowered(spec, *GRID, *more, sizes=sizes, machine=WITH_INSTRUCTIONS)
    program = tile_program(nest, WITH_INSTRUCTIONS, RULES)
    launch = program.launches[-1]
    launch = replace(launch, once=inlined(launch.once), body=inlined(launch.body))
    return launch, facts(launch, {p.name: p.dtype for p in program.tensors})


def value(name):
    return Name("value", name)


def test_axes_that_meet_are_one_class():
    _, found = known("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] - s[m]")
    assert found.root((value("x"), "m")) == found.root((value("s"), "m"))
    assert found.root((value("x"), "k")) == found.root((value("y"), "k"))
    assert found.root((value("x"), "k")) != found.root((value("x"), "m"))


def test_what_is_reduced_is_known():
    _, found = known("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] - s[m]")
    reduced = {found.root(held) for held in found.reduced}
    assert found.root((value("x"), "k")) in reduced and found.root((value("x"), "m")) not in reduced


def test_operands_that_are_loaded_for_a_matmul_alone_go_to_shared_memory():
    launch, found = known(
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        more=LOOP,
        sizes=SIZES | dict(N=64),
        **MATMUL,
    )
    (matmul,) = found.matmuls.values()
    assert found.staged == {value("x"), value("w")}
    assert (matmul.m, matmul.n, matmul.k, matmul.batch) == (("m",), ("n",), ("k",), ())
    assert matmul.adds and matmul.dtype == "f16"
    assert not found.staged & {s.name for s in statements(launch.body) if isinstance(s, Assign)}


def test_an_operand_that_is_read_elsewhere_is_held_in_registers():
    _, found = known(
        "p[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        "s[m] = sum(f32(x[m, k]), k)",
        "y[m, n] = p[m, n] + s[m]",
        more=("compute(p, unit=matrix)",),
        sizes=SIZES | dict(N=64),
        **MATMUL,
    )
    assert found.staged == {value("w")}


def test_positions_along_padded_dimensions_are_put_where_they_are_used():
    launch, _ = known("y[m, k] = pad(x[m + 1, k], 0.0)")
    loads = [s for s in statements(launch.body) if isinstance(s, Load)]
    assert loads and all(n.sort != "dim" for n in expressions(launch.body) if isinstance(n, Name))
