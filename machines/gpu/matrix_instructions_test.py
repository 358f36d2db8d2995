"""Families of matrix instructions: the files of the tree, and faults in such a table."""

import copy
import re

import pytest

from ir.errors import KernelError
from machines.gpu.matrix_instructions import families, family, rows

TABLE = {
    "source": "a manual",
    "threads": 32,
    "spelling": {"i8": "s8"},
    "instruction": [
        {
            "name": "mma.n{n}.{a}.{c}",
            "shape": [16, 8, 16],
            "n": [[8, 24, 8], [64, 64, 1]],
            "types": [["i8", "i8", "i32"], ["u8", "i8", "i32"]],
            "a": {"registers": "((4,8),(2,2,2)):((32,1),(16,8,128))", "shared": ["k"]},
            "b": {"shared": ["k", "mn"]},
            "c": {"registers": "((4,8),(2,2)):((32,1),(16,8))"},
        }
    ],
}


def test_a_row_gives_an_instruction_for_each_combination_of_types():
    first, second = rows(TABLE, "mine")
    assert (first.name, second.name) == ("mma.n{n}.s8.i32", "mma.n{n}.u8.i32")
    assert (first.m, first.n, first.k) == (16, 8, 16) and first.sizes_n == (8, 16, 24, 64)
    assert first.a.shared == ("k",) and first.b.registers == "" and first.cycles is None
    assert (first.family, first.threads, first.source) == ("mine", 32, "a manual")


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("threads",), 0, "`threads` is 0"),
        (("source",), None, "`source` is missing"),
        (("warp",), 32, "`warp` is not known"),
        (("spelling",), {"i9": "s9"}, "`spelling` is"),
        (("swizzles",), ["Sw<3>"], "`swizzles` is"),
        (("instruction",), [], "`instruction` is []"),
        (("instruction", 0, "name"), "mma {a}", "`instruction[0].name` is"),
        (("instruction", 0, "name"), "mma.{d}", "`instruction[0].name` is"),
        (("instruction", 0, "shape"), [16, 8], "`instruction[0].shape` is"),
        (("instruction", 0, "n"), [[8, 25, 8]], "`instruction[0].n` is"),
        (("instruction", 0, "n"), [[16, 32, 8]], "`instruction[0].n` is"),
        (("instruction", 0, "types"), [["i8", "i8"]], "`instruction[0].types` is"),
        (("instruction", 0, "types"), [["i8", "i8", "f31"]], "`instruction[0].types` is"),
        (("instruction", 0, "a"), {"registers": "4 x 8"}, "`instruction[0].a.registers` is"),
        (("instruction", 0, "a"), {}, "`instruction[0].a` is empty"),
        (("instruction", 0, "b"), {"shared": ["n"]}, "`instruction[0].b.shared` is"),
        (("instruction", 0, "c"), {}, "`instruction[0].c.registers` is missing"),
        (("instruction", 0, "cycles"), 0, "`instruction[0].cycles` is 0"),
        (("instruction", 0, "block"), 8, "`instruction[0].block` does not go with `scales`"),
        (("instruction", 0, "scales"), "16", "`instruction[0].scales` is"),
    ],
)
def test_a_fault_in_a_family_is_named(path, value, fault):
    table = copy.deepcopy(TABLE)
    at = table
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    if value is None:
        del at[path[-1]]
    with pytest.raises(KernelError, match=re.escape(fault)) as caught:
        rows(table, "mine")
    assert caught.value.where == "instructions/mine.toml" and caught.value.allowed


def test_scales_of_blocks_are_one_for_each_row_and_block():
    found = [i for i in family("mfma_cdna4") if i.block]
    assert {(i.m, i.n, i.k) for i in found} == {(16, 16, 128), (32, 32, 64)}
    assert {i.block for i in found} == {32} and len(found) == 8
    assert not any(i.block for i in family("mfma_cdna3"))


@pytest.mark.parametrize("name", families())
def test_each_family_has_distinct_instructions_of_one_number_of_threads(name):
    found = family(name)
    keys = {(i.name, i.a.dtype, i.b.dtype, i.c.dtype) for i in found}
    assert len(keys) == len(found) > 0
    assert len({i.threads for i in found}) == 1 and all(i.source for i in found)


def test_cycles_are_those_of_the_peak_of_the_chip():
    """Four matrix units of a compute unit reach 2048 operations a cycle in 16 bits, 4096 in 8."""
    rate = {"f16": 2048, "f8e4m3fnuz": 4096, "i8": 4096, "tf32": 1024, "f32": 256, "f64": 256}
    for one in family("mfma_cdna3"):
        if one.a.dtype in rate:
            assert one.cycles == 2 * one.m * one.n * one.k / (rate[one.a.dtype] / 4)
