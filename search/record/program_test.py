"""A program's record is read as it was written, and found by its network."""

from dataclasses import replace

import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_spec
from search.record.program import (
    KernelUse,
    ProgramRecord,
    network_digest,
    program_file,
    read_program,
    write_program,
)

KERNEL = KernelUse("k_1", 3, "a", "b", "c", "tongue", 2.5, 5.0, 16, "simulated", "simulator")
RECORD = ProgramRecord(
    name="net",
    network="0123",
    target="chip",
    backend="tongue",
    command="evolve --problem=net.py",
    device="",
    toolchain="tongue 1",
    inputs=("x: f32[4]",),
    choices={"one:k_1": True, "channels_last": False},
    kernels=(KERNEL, replace(KERNEL, name="k_2", correct_by="", evaluations=0)),
    sum_us=15.0,
    first_sum_us=30.0,
    time_kind="simulated",
)


PASSED_OVER = (replace(KERNEL, passed_over="d"), KERNEL)


@pytest.mark.parametrize(
    "more", [{}, {"us": 9.0, "graph_us": 7.5, "first_us": 20.0, "kernels": PASSED_OVER}]
)
def test_it_is_read_as_it_was_written(tmp_path, more):
    record = replace(RECORD, **more)
    assert record.passed_over == ({"d"} if more else set())
    assert ("passed_over" in record.text()) == bool(more)  # files without it do not change
    file = write_program(tmp_path, record)
    assert file == program_file(tmp_path, "0123", "chip", "tongue")
    assert read_program(file) == record and [f.name for f in file.parent.iterdir()] == [file.name]
    assert record.best_us == (7.5 if more else 15.0)


def test_what_is_not_there_is_none_and_what_was_edited_is_refused(tmp_path):
    assert read_program(tmp_path / "none.toml") is None
    file = write_program(tmp_path, RECORD)
    text = file.read_text()
    file.write_text(text.replace("sum_us = 15.0", "sum_us = 1.0"))
    with pytest.raises(KernelError, match="edited by hand"):
        read_program(file)
    file.write_text(text.replace("calls = 3", "call = 3"))
    with pytest.raises(KernelError, match="no record of a program"):
        read_program(file)


def test_a_network_is_known_by_its_equations_and_not_by_its_name():
    text = 'def {}(x: f32[{}]) -> f32[{}]:\n    """{}"""\n    y[i] = x[i] + 1.0\n    return y\n'
    one, same, wider = (
        parse_spec(text.format(name, size, size, name))
        for name, size in (("a", 4), ("b", 4), ("a", 8))
    )
    assert network_digest(one, {}, ()) == network_digest(same, {}, ())
    found = {
        network_digest(one, {}, ()),
        network_digest(wider, {}, ()),
        network_digest(one, {"y": "x"}, ()),
        network_digest(one, {}, ("x",)),
        network_digest(one, {}, (), ("sort",)),
    }
    assert len(found) == 5
