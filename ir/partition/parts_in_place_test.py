"""Operands of a concatenation are stored in its buffer directly, and results are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.errors import KernelError
from ir.network import Network, Outside
from ir.parse.parse import parse_spec
from ir.partition import parts_in_place
from ir.partition.partition import partition
from ir.partition.parts_in_place import with_parts_in_place
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise
from ir.spec import Part

A = "a[n, c, y] = sum(x[n, k, y] * v[c, k], k)"
B = "b[n, c, y] = sum(x[n, k, y] * w[c, k], k)"
JOIN = "t[n, o, y] = where(o < 8, pad(a[n, o, y], 0.0), pad(b[n, o - 8, y], 0.0))"
INPUTS = "x: f32[3, 8, 12], v: f32[8, 8], w: f32[8, 8]"


def spec_of(*lines, inputs=INPUTS, outputs="t: f32[3, 16, 12]"):
    names = ", ".join(o.partition(":")[0] for o in outputs.split("; "))
    types = ", ".join(o.partition(": ")[2] for o in outputs.split("; "))
    body = "".join(f"    {line}\n" for line in lines)
    return parse_spec(f'def f({inputs}) -> ({types}):\n    """f"""\n{body}    return {names}\n')


def made(*lines, lowers=lambda _: None, aliases=None, **more) -> Network:
    """The network, which computes what the spec does."""
    spec = spec_of(*lines, **more)
    network = partition(spec, {}, aliases, lowers)
    given = random_inputs(spec, {}, np.random.default_rng(5))
    exact = evaluate(spec, given, {})
    for t, found in zip(spec.outputs, stepwise(network, given), strict=True):
        np.testing.assert_allclose(found, exact[t.name], rtol=1e-12, atol=1e-12)
    return network


def parts(network: Network) -> list[tuple[str, Part | None]]:
    """What the steps store, in order, each with its place in it."""
    return [
        (name, t.part)
        for s in network.steps
        for t, name in zip(s.spec.outputs, s.outputs, strict=True)
    ]


def test_all_parts_are_stored_where_they_lie():
    network = made(A, B, JOIN)
    assert parts(network) == [("t", Part(1, 0, 16)), ("t", Part(1, 8, 16))]
    assert {b.name for b in network.buffers} == {"x", "v", "w", "t"}


def test_the_concatenation_may_lie_between_steps_and_be_read_by_several():
    products = (
        f"{r}[n, {r}_o, y] = sum(t[n, o, y] * {u}[{r}_o, o], o)"
        for r, u in (("g", "p"), ("h", "s"))
    )
    network = made(
        *(A, B, JOIN, *products),
        inputs=f"{INPUTS}, p: f32[5, 16], s: f32[7, 16]",
        outputs="g: f32[3, 5, 12]; h: f32[3, 7, 12]",
    )
    assert parts(network)[:2] == [("t", Part(1, 0, 16)), ("t", Part(1, 8, 16))]
    assert network.buffer("t").role == "between"


def test_channels_may_be_last():
    a, b = (
        line.replace("[n, c, y]", "[n, y, c]").replace("x[n, k, y]", "x[n, y, k]")
        for line in (A, B)
    )
    join = "t[n, y, o] = where(o < 8, pad(a[n, y, o], 0.0), pad(b[n, y, o - 8], 0.0))"
    network = made(
        *(a, b, join), inputs=INPUTS.replace("3, 8, 12", "3, 12, 8"), outputs="t: f32[3, 12, 16]"
    )
    assert [p for _, p in parts(network)] == [Part(1, 0, 16), Part(1, 8, 16)]


def test_what_reads_a_part_too_reads_it_there():
    network = made(
        *(A, B, JOIN, "z[n, y] = max(b[n, c, y], c)"), outputs="t: f32[3, 16, 12]; z: f32[3, 12]"
    )
    assert parts(network) == [("t", Part(1, 0, 16)), ("t", Part(1, 8, 16)), ("z", None)]
    (z,) = (s for s in network.steps if "z" in s.outputs)
    assert z.inputs == ("t",) and [n.value for n in z.spec.inputs[0].shape] == [3, 16, 12]


@pytest.mark.parametrize(
    ("line", "outputs"),
    [
        ("", "t: f32[3, 16, 12]; b: f32[3, 8, 12]"),
        (
            "z[n, c, y] = sum(pad(b[n, c + r - 1, y], 0.0), r=3)",
            "t: f32[3, 16, 12]; z: f32[3, 8, 12]",
        ),
    ],
)
def test_a_part_that_is_returned_or_read_beyond_its_borders_is_copied(line, outputs):
    network = made(A, B, JOIN, *([line] if "z:" in outputs else []), outputs=outputs)
    found = parts(network)
    assert ("t", Part(1, 0, 16)) in found and found.count(("b", None)) == 1
    (copy,) = (s for s in network.steps if s.inputs == ("b",) and "t" in s.outputs)
    assert copy.spec.outputs[0].part == Part(1, 8, 16)


def test_an_input_is_copied():
    join = JOIN.replace("pad(b[n, o - 8, y]", "pad(x[n, o - 8, y]")
    network = made(A, join, inputs=INPUTS.removesuffix(", w: f32[8, 8]"))
    assert parts(network) == [("t", Part(1, 0, 16)), ("t", Part(1, 8, 16))]
    assert network.steps[1].inputs == ("x",)


def test_one_tensor_twice_is_copied():
    join = JOIN.replace("pad(b[n, o - 8, y]", "pad(a[n, o - 8, y]")
    network = made(A, join, inputs=INPUTS.removesuffix(", w: f32[8, 8]"))
    assert parts(network) == [("a", None), ("t", None)]


def test_parts_that_do_not_begin_where_vectors_do_are_copied():
    network = made(*(A, B, JOIN), inputs=INPUTS.replace("12]", "11]"), outputs="t: f32[3, 16, 11]")
    assert len(network.steps) == 2  # 8 * 11 * 4 bytes are vectors
    join = JOIN.replace("o < 8", "o < 7").replace("o - 8", "o - 7")
    network = made(
        *(A.replace("c", "d"), B, join),
        inputs="x: f32[3, 8, 11], v: f32[7, 8], w: f32[8, 8]",
        outputs="t: f32[3, 15, 11]",
    )
    assert parts(network) == [("a", None), ("b", None), ("t", None)]


def test_concatenations_of_concatenations_are_one():
    whole = "u[n, q, y] = where(q < 16, pad(t[n, q, y], 0.0), pad(d[n, q - 16, y], 0.0))"
    third = "d[n, c, y] = sum(z[n, k, y] * w[c, k], k)"
    network = made(
        *(A, B, JOIN.replace("] =", "]: [3, 16, 12] =", 1), third, whole),
        inputs=f"{INPUTS}, z: f32[3, 8, 12]",
        outputs="u: f32[3, 24, 12]",
    )
    own = (Part(1, 0, 24), Part(1, 8, 24), Part(1, 16, 24))
    assert parts(network) == [("u", one) for one in own]


LAYER = (  # of a dense block: what reads all before it, and what it makes
    "m{n}[c{n}] = max(t{n}[n, c{n}, y], n, y)",
    "d{n}[n, o, y] = sum(t{n}[n, c{n}, y] * m{n}[c{n}] * w{n}[o, c{n}], c{n})",
    "t{p}[n, c{p}, y]: [3, {size}, 12] = where(c{p} < {own}, pad(t{n}[n, c{p}, y], 0.0), pad(d{n}[n, c{p} - {own}, y], 0.0))",
)


def dense_block(layers: int, first: str) -> Network:
    """A block of layers that each read the concatenation of all before. first: the equation of what it begins with."""
    lines, inputs = [first], "x: f32[3, 8, 12]"
    for n in range(layers):
        own = 8 * (n + 1)
        lines += [line.format(n=n, p=n + 1, own=own, size=own + 8) for line in LAYER]
        inputs += f", w{n}: f32[8, {own}]"
    outputs = f"t{layers}: f32[3, {8 * (layers + 1)}, 12]"
    maxima = "".join(f"; m{n}: f32[{8 * (n + 1)}]" for n in range(layers))
    return made(*lines, inputs=inputs, outputs=outputs + maxima)


def test_a_block_of_layers_that_read_all_before_them_has_one_buffer(monkeypatch):
    monkeypatch.setattr(parts_in_place, "FEWEST", 0)
    network = dense_block(4, "t0[n, c0, y] = x[n, c0, y] * exp(x[n, 0, 0])")
    assert {b.name for b in network.buffers if len(b.shape) == 3} == {"x", "t4"}
    firsts = [p.first for name, p in parts(network) if name == "t4" and p]
    assert sorted(firsts) == [0, 8, 16, 24, 32]


def test_an_input_that_such_a_block_begins_with_is_copied_first(monkeypatch):
    monkeypatch.setattr(parts_in_place, "FEWEST", 0)
    monkeypatch.setattr(parts_in_place, "LEAST", 0)
    network = dense_block(3, "t0[n, c0, y] = x[n, c0, y]")
    stored = [
        (p and p.first, s.inputs) for s, (_, p) in zip(network.steps, parts(network), strict=True)
    ]
    assert stored == [
        (None, ("x",)),
        (8, ("x", "m0", "w0")),
        (0, ("x",)),
        (None, ("t3",)),
        (16, ("t3", "m1", "w1")),
        (None, ("t3",)),
        (24, ("t3", "m2", "w2")),
    ]


def test_what_reads_a_copied_part_beside_others_reads_all_in_place(monkeypatch):
    monkeypatch.setattr(parts_in_place, "LEAST", 0)
    whole = "u[n, q, y] = where(q < 8, pad(x[n, q, y], 0.0), where(q < 16, pad(a[n, q - 8, y], 0.0), pad(d[n, q - 16, y], 0.0)))"
    network = made(
        A,
        "t[n, o, y]: [3, 16, 12] = where(o < 8, pad(x[n, o, y], 0.0), pad(a[n, o - 8, y], 0.0))",
        "s[n, y] = sum(square(t[n, o, y]), o)",
        "d[n, c, y] = sum(x[n, k, y] * w[c, k] * s[n, y], k)",
        whole,
        outputs="u: f32[3, 24, 12]; s: f32[3, 12]",
    )
    assert network.steps[0].inputs == ("x",) and parts(network)[0] == ("u", Part(1, 0, 24))
    (total,) = (s for s in network.steps if "s" in s.outputs)
    assert total.inputs == ("u",)
    assert equation_text(total.spec.equations[0]).endswith(" = x1[i, j, k]")


def test_a_refused_kernel_leaves_its_part_to_be_copied():
    asked = []

    def lowers(spec):
        asked.append(spec)
        if any(t.part and t.part.first for t in spec.outputs) and len(spec.inputs) == 2:
            raise KernelError("no")

    network = made(A, B, JOIN, lowers=lowers)
    assert parts(network) == [("t", Part(1, 0, 16)), ("b", None), ("t", Part(1, 8, 16))]
    assert {s.spec for s in network.steps} <= set(asked)


def test_where_no_kernel_stores_parts_the_network_stays():
    def lowers(spec):
        if any(t.part for t in spec.outputs):
            raise KernelError("no")

    network = made(A, B, JOIN, lowers=lowers)
    assert parts(network) == [("a", None), ("b", None), ("t", None)]
    assert with_parts_in_place(network, lambda _: False) is network


def test_a_call_from_outside_still_comes_after_as_many_steps():
    spec = spec_of(
        *(A, B, JOIN, "z[n] = r[n] * 2.0"),
        inputs=f"{INPUTS}, r: f32[3]",
        outputs="t: f32[3, 16, 12]; z: f32[3]",
    )
    network = partition(spec, {}, outside=(Outside("f", ("t",), ("r",)),))
    assert len(network.steps) == 3 and [p.before for p in network.pauses] == [2]
