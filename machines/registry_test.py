"""A machine from its table: one test for each thing that can be wrong with it."""

import copy

import pytest

from ir.errors import KernelError
from machines.gpu.gpu import GPU
from machines.registry import read
from machines.tiles.tiles import TILES

TABLE = {
    "name": "chip",
    "title": "A chip",
    "class": "tiles",
    "backends": ["null", "sim"],
    "levels": {"grid": 4},
    "spaces": {"global": {"bytes": 100, "bytes_per_second": 2e9}, "local": {"bytes": 10}},
    "units": {"vector": {"flops": {"f32": 5.0, "f16": 7}}},
    "overheads": {"launch_us": 1.5},
    "sim": {"clock_hz": 1e9},
}


def changed(path: str, value: object) -> dict:
    table = copy.deepcopy(TABLE)
    *parents, last = path.split(".")
    node = table
    for part in parents:
        node = node.setdefault(part, {})
    if value is None:
        del node[last]
    else:
        node[last] = value
    return table


def fault(path: str, value: object) -> KernelError:
    with pytest.raises(KernelError) as caught:
        read(changed(path, value), "chip.toml")
    assert str(caught.value).startswith("chip.toml: ")
    assert "docs/add_a_chip.md" in caught.value.hint
    return caught.value


def fault_of(path: str, value: object) -> KernelError:
    """The fault, whatever it advises."""
    with pytest.raises(KernelError) as caught:
        read(changed(path, value), "chip.toml")
    return caught.value


def test_a_machine_has_the_numbers_of_its_table():
    found = read(TABLE)
    assert (found.name, found.title, found.backends) == ("chip", "A chip", ("null", "sim"))
    assert (found.parallel, found.on_chip_bytes, found.bandwidth) == (4, 10, 2e9)
    assert (found.launch_us, found.step_us) == (1.5, 0.0)
    assert found.details == {"sim": {"clock_hz": 1e9}}


def test_a_dtype_without_a_peak_has_that_of_f32():
    found = read(TABLE)
    assert (found.peak("vector", "f16"), found.peak("vector", "bf16")) == (7.0, 5.0)


def test_a_machine_without_a_matrix_unit_takes_no_operands_there():
    assert not read(TABLE).has_matrix("f32")
    table = changed("units.matrix", {"flops": {"f16": 9.0}, "step": [4, 4, 4]})
    assert read(table).has_matrix("f16") and not read(table).has_matrix("f32")


@pytest.mark.parametrize(
    "path",
    [
        "name",
        "title",
        "class",
        "backends",
        "levels",
        "levels.grid",
        "spaces",
        "spaces.global",
        "spaces.local",
        "spaces.global.bytes",
        "spaces.global.bytes_per_second",
        "units",
        "units.vector",
        "units.vector.flops",
    ],
)
def test_a_missing_field_is_named(path):
    assert f"field `{path}` is missing" in str(fault(path, None))


@pytest.mark.parametrize(
    "path, value",
    [
        ("name", 3),
        ("backends", "null"),
        ("levels", 3),
        ("spaces.local.bytes", "10"),
        ("units.vector.flops.f32", "fast"),
        ("levels.grid", True),
        ("units.vector", 3),
    ],
)
def test_a_field_of_a_wrong_kind_is_named_with_its_value(path, value):
    found = fault(path, value)
    assert f"`{path}" in str(found) and (repr(value) in str(found) or "missing" in str(found))


@pytest.mark.parametrize(
    "path, value",
    [
        ("levels.grid", 0),
        ("levels.grid", -4),
        ("levels.grid", 1.5),
        ("spaces.local.bytes", 0),
        ("units.vector.flops.f32", -1.0),
        ("overheads.launch_us", -1.0),
    ],
)
def test_a_number_is_positive_and_whole_where_it_counts(path, value):
    found = fault(path, value)
    assert f"field `{path}` is {value!r}" in str(found)
    assert found.allowed == "a positive number"


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("path", ["spaces.local.bytes", "levels.grid", "units.vector.flops.f32"])
def test_a_number_is_finite(path, value):
    assert path in str(fault(path, value))


@pytest.mark.parametrize(
    "path, value, allowed",
    [
        ("levels.core", 32, "grid, thread, warp, loop"),
        ("spaces.l2", {"bytes": 4}, "global, cache, register, local"),
        ("units.tensor", {"flops": {}}, "matrix, vector, special"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(path, value, allowed):
    found = fault(path, value)
    assert f"field `{path}` is not known" in str(found)
    assert found.allowed == allowed


def test_threads_and_engines_are_those_of_the_table():
    found = read(TABLE)
    assert (found.threads, found.warp, found.engines, found.box) == (1024, 1, (), 0)
    assert found.model == TILES and found.atomics == ("f32", "i32")
    table = changed("levels", {"grid": 4, "thread": 512, "warp": 64})
    table["engines"], table["box"] = ["bulk"], 128
    table["spaces"]["register"], table["class"] = {"bytes": 64}, "gpu"
    table["spaces"]["shared"] = table["spaces"].pop("local")
    found = read(table)
    assert (found.threads, found.warp, found.engines, found.box) == (512, 64, ("bulk",), 128)
    assert found.model == GPU


def test_an_unknown_engine_is_refused_with_those_there_are():
    found = fault("engines", ["dma"])
    assert "field `engines` has 'dma', which is not known" in str(found)
    assert found.allowed == "bulk, lds"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", "/tmp/x", "a b", "a.b", "x" * 65]
)
def test_a_name_is_one_of_a_folder(name):
    found = fault_of("name", name)
    assert f"field `name` is {name!r}" in str(found) and "letters" in found.allowed


@pytest.mark.parametrize(
    "path, hint",
    [
        ("overhead", "overheads"),
        ("overheads.lanch_us", "launch_us"),
        ("spaces.global.byte", "bytes"),
        ("units.vector.flop", "flops"),
        ("units.vector.flops.f31", "f32"),
        ("backend", "backends"),
    ],
)
def test_a_field_that_nobody_reads_is_refused(path, hint):
    found = fault_of(path, 1)
    assert f"field `{path}` is not known" in str(found)
    assert f"did you mean `{hint}`?" in found.hint


@pytest.mark.parametrize(
    "step", [[16, 16], [16, 16, 0], [16, 16, -1], [16, 16, 2.5], [16, 16, "16"]]
)
def test_a_step_is_three_whole_numbers(step):
    table = changed("units.matrix", {"flops": {"f16": 9.0}, "step": step})
    with pytest.raises(KernelError, match="units.matrix.step"):
        read(table)


@pytest.mark.parametrize("path", ["box", "spaces.global.sector", "spaces.cache.bytes_per_second"])
def test_what_is_written_is_not_0(path):
    table = changed("spaces.cache", {"bytes": 9})
    *parents, last = path.split(".")
    node = table
    for part in parents:
        node = node[part]
    node[last] = 0
    with pytest.raises(KernelError, match=f"field `{path}` is 0"):
        read(table)


def test_threads_are_whole_waves():
    assert (
        "multiple of `levels.warp`"
        in fault_of("levels", {"grid": 4, "thread": 100, "warp": 64}).allowed
    )


def test_an_unknown_class_is_refused_with_those_there_are():
    found = fault("class", "fpga")
    assert "field `class` is 'fpga'" in str(found) and found.allowed == "tiles or gpu"


def test_the_space_of_tiles_is_that_of_the_class():
    assert "field `spaces.local` is not known" in str(fault("class", "gpu"))
    assert "field `spaces.shared` is not known" in str(fault("spaces.shared", {"bytes": 10}))


def test_registers_go_with_the_class():
    table = changed("class", "gpu")
    table["spaces"]["shared"] = table["spaces"].pop("local")
    with pytest.raises(KernelError, match="field `spaces.register` is missing"):
        read(table)
    found = fault("spaces.register", {"bytes": 64})
    assert "field `spaces.register` is given" in str(found) and "gpu" in found.allowed
