"""Every kernel of the library and of the language suite becomes a thread program, whose fragments
cover their tiles and whose shared tiles are written before they are read."""

from itertools import combinations

import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads.distribution import bits_of
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.thread import (
    Commit,
    Copy,
    Element,
    Loop,
    Multiply,
    SharedLoad,
    SharedStore,
    Wait,
    statements,
)
from backends.gpu.tile import expressions
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.spec import Number, Size
from machines.gpu.matrix_instructions import family
from testing.conformance.suite import language_cases, served
from testing.samples.samples import KERNELS, WITH_INSTRUCTIONS, workload

TABLE = family("mma_sync")


def library(name):
    work = workload(name)
    nest = lower(
        work.spec,
        autoschedule(work.spec, WITH_INSTRUCTIONS, work.tune),
        WITH_INSTRUCTIONS,
        work.tune,
    )
    return nest, thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLE)


def cases():
    for key, case in language_cases().items():
        if served(case, WITH_INSTRUCTIONS) and "copy" not in case.verbs:
            yield pytest.param(case, id=key)


def problems(program):
    """What is wrong with a program."""
    for launch in program.launches:
        every = [s for block in (launch.once, launch.body) for s in statements(block)]
        known = {f.name for f in launch.fragments}
        for f in launch.fragments:
            for a, b in combinations(f.axes, 2):
                if bits_of(a) & bits_of(b):
                    yield f"{f.name}: {a.index} and {b.index} share bits of the thread's number"
            for a in f.axes:
                if isinstance(a.width, Number) and a.width.value % a.span:
                    yield f"{f.name}: {a.width.value} positions of {a.index} in spans of {a.span}"
        for e in expressions(every):
            if isinstance(e, Element) and e.name not in known:
                yield f"{e.name} is no fragment"
        written = {s.tile for s in every if isinstance(s, SharedStore | Copy)}
        regions = {t.region for t in launch.shared if t.name in written}
        tiles = {t.name: t for t in launch.shared}
        for s in every:
            if isinstance(s, SharedLoad) and tiles[s.tile].region not in regions:
                yield f"{s.tile} is read and never written"


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_of_the_library_becomes_threads(name):
    nest, program = library(name)
    assert list(problems(program)) == []
    assert program == thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLE)
    assert [one.name for one in program.launches] == [one.name for one in nest.launches]


@pytest.mark.parametrize("case", list(cases()))
def test_a_case_of_the_language_becomes_threads(case):
    try:
        program = thread_program(case.nest(WITH_INSTRUCTIONS), WITH_INSTRUCTIONS, RULES, TABLE)
    except BackendError as e:
        assert e.stage == "emit" and e.reason
        return
    assert list(problems(program)) == []


def test_matmuls_of_16_bits_are_instructions_and_others_are_not():
    _, dense = library("matmul_bias_gelu")
    (found,) = (s for s in statements(dense.launches[0].body) if isinstance(s, Multiply))
    assert found.instruction is not None and "m16n8k16" in found.instruction.name


def test_copies_run_ahead_of_their_loop():
    _, program = library("matmul_bias_gelu")
    launch = program.launches[0]
    first, loop = (s for s in launch.body if isinstance(s, Loop))
    stages = max(t.stages for t in launch.shared)
    assert first.high == Number(stages - 1) and Commit() in first.body
    assert loop.body[0] == Wait(stages - 2)
    ahead = [s for s in statements(loop.body) if isinstance(s, Copy)]
    assert len(ahead) == 2 and all(s.stage is not None for s in ahead)


@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_names_the_sizes_that_its_statements_read(name):
    _, program = library(name)
    for launch in program.launches:
        nodes = expressions(launch.once, launch.body, launch.fragments, launch.shared)
        read = {n.name for n in nodes if isinstance(n, Size) and n.name.isupper()}
        assert read and read <= {*launch.sizes}
