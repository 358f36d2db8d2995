"""Kernels of the library and of the language suite as thread programs: each computes what it must,
at all check sizes, without a fault."""

from __future__ import annotations

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads.interpreter.counts import require_no_conflicts
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.thread import Multiply, WarpgroupMultiply, statements
from backends.measure import compare, reference
from backends.shared.arrays import output, poisoned, to_device
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.sizes import bind, shape
from ir.spec import FLOATS
from machines.gpu.matrix_instructions import family
from testing.conformance.case import TINY
from testing.conformance.suite import language_cases, served
from testing.samples.samples import KERNELS, WITH_INSTRUCTIONS, workload
from testing.slow import in_turn

TABLES = {"warps": family("mma_sync"), "warpgroups": family("mma_sync") + family("wgmma")}
LIMIT = 227 << 10  # bytes of shared memory of a block
SEED = 7


def kernel(name, table):
    """A kernel of the library with its nest and its thread program."""
    work = workload(name)
    schedule = autoschedule(work.spec, WITH_INSTRUCTIONS, work.tune)
    nest = lower(work.spec, schedule, WITH_INSTRUCTIONS, work.tune)
    return work, nest, thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLES[table])


def results(nest, program, sizes, inputs, table):
    """The outputs of a program, and what it moved."""
    bound = bind(nest.spec, sizes) | dict(nest.spec.attributes)
    arrays = {
        p.name: to_device(np.asarray(inputs[p.name]), p.dtype)
        if p.name in inputs
        else poisoned(p, bound)
        for p in program.tensors
    }
    counts = interpret(program, bound, arrays, TABLES[table], LIMIT, SEED)
    outputs = nest.spec.outputs
    return {t.name: output(t, arrays[t.name]).reshape(shape(t, bound)) for t in outputs}, counts


@pytest.mark.parametrize(("name", "table"), in_turn(KERNELS, TABLES))
def test_a_kernel_of_the_library_is_correct(name, table):
    work, nest, program = kernel(name, table)
    for sizes in work.checks:
        known = reference(work.spec, sizes, SEED)
        found, _ = results(nest, program, sizes, known.inputs, table)
        for tensor in work.spec.outputs:
            compare(work.spec, sizes, tensor.name, found[tensor.name], known)


def test_the_table_decides_which_instruction_multiplies():
    kinds = {
        table: {
            type(s)
            for name in KERNELS
            for one in kernel(name, table)[2].launches
            for s in statements(one.body)
        }
        for table in TABLES
    }
    assert Multiply in kinds["warps"] and WarpgroupMultiply not in kinds["warps"]
    assert WarpgroupMultiply in kinds["warpgroups"]


def cases():
    for key, case in language_cases().items():
        if served(case, WITH_INSTRUCTIONS) and "copy" not in case.verbs:
            yield pytest.param(case, id=key)


@pytest.mark.parametrize("case", list(cases()))
def test_a_case_of_the_language_is_correct(case):
    nest = case.nest(WITH_INSTRUCTIONS)
    try:
        program = thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLES["warps"])
    except BackendError as e:
        assert e.stage == "emit" and e.reason
        return
    for sizes in case.workload.checks:
        known = case.given(sizes)
        found, _ = results(nest, program, sizes, known.inputs, "warps")
        for tensor in nest.spec.outputs:
            if case.near is None or tensor.dtype not in FLOATS:
                compare(nest.spec, sizes, tensor.name, found[tensor.name], known)
            else:
                assert near(case, tensor.name, found, known)


def near(case, name, found, known):
    """Whether each element is as near as the case asks, or free."""
    got = found[name].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        right = np.asarray(known.exact[name]).astype(found[name].dtype).astype(np.float64)
        rtol, least = case.near(name)
        floor = np.where(np.abs(right) > TINY, rtol / 10, least)
        good = np.abs(got - right) <= rtol * np.abs(right) + floor
    good = np.where(np.isfinite(right), good, (got == right) | np.isnan(got) & np.isnan(right))
    if case.free is not None:
        good |= case.free(known.inputs, name) & (np.isnan(got) | (got == 0))
    return good.all()


def test_panels_keep_their_promise_of_no_bank_conflicts():
    work, nest, program = kernel("matmul_bias_gelu", "warps")
    sizes = work.checks[-1]
    _, counts = results(nest, program, sizes, reference(work.spec, sizes, SEED).inputs, "warps")
    for launch in program.launches:
        panels = [s.name for s in launch.shared if s.panel]
        assert panels
        require_no_conflicts(counts, *panels, launch=launch.name)
