"""Tables of backends and machine classes: every figure that is no figure is refused by its name."""

import copy
import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.registry import REGISTRY, target
from ir.errors import KernelError

FOLDER = Path(__file__).parent / "targets"
TABLES = {f.stem: tomllib.loads(f.read_text()) for f in sorted(FOLDER.glob("*.toml"))}
MAY_BE_0 = (  # what costs nothing, or is not there
    "overheads.",
    "_cycles",
    "shared_reserved",
    "null.",
)


def leaves(table, prefix=""):
    """The dotted paths of all numbers."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name


NUMBERS = [(name, path) for name, table in TABLES.items() for path in leaves(table)]


def written(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def changed(name, path, value):
    """The text of a target file with one field changed; None: without it."""
    table = copy.deepcopy(TABLES[name])
    *parents, last = path.split(".")
    node = table
    for part in parents:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return "".join(f"{k} = {written(v)}\n" for k, v in table.items())


def refused(folder, name, path, value):
    file = folder / f"{name}.toml"
    file.write_text(changed(name, path, value))
    with pytest.raises(KernelError) as caught:
        target(str(file))
    return caught.value, str(file)


@given(st.sampled_from(NUMBERS), st.sampled_from([math.nan, math.inf, -math.inf, -1, -0.5, 0, "7"]))
def test_a_figure_that_is_none_is_refused_by_its_name(tmp_path_factory, number, value):
    name, path = number
    if value == 0 and any(word in path for word in MAY_BE_0):
        return
    folder = tmp_path_factory.getbasetemp()
    if path.endswith(".arch") and value == "7":
        value = "sm_90"
    error, file = refused(folder, name, path, value)
    assert f"field `{path}` " in str(error) and error.where == file
    assert error.allowed and error.hint


@pytest.mark.parametrize("name, path", NUMBERS)
def test_a_figure_of_a_backend_must_be_there(name, path, tmp_path):
    backend = path.partition(".")[0]
    optional = (
        path.endswith(("programs_of_one_warp", "cluster_blocks", ".i64", ".b8"))
        or backend == "null"
    )
    peaks = ("lanes.", "depth_per_cycle.")  # of dtypes for which no peak is stated
    if (
        backend not in (*TABLES[name]["backends"], TABLES[name]["class"])
        or optional
        or any(p in path for p in peaks)
    ):
        return
    error, _ = refused(tmp_path, name, path, None)
    assert f"field `{path}` is missing" in str(error)


@pytest.mark.parametrize(
    "name, path, value, what",
    [
        ("npu", "sim", None, "field `sim` is missing"),
        ("npu", "sim.dma", None, "field `sim.dma` is missing"),
        ("npu", "sim.row", 8, "did you mean `rows`?"),
        ("npu", "sim.dma.chunk_byte", 8, "did you mean `chunk_bytes`?"),
        ("npu", "sim.matrix.depth_per_cycle.f31", 1.0, "did you mean `f32`?"),
        ("npu", "sim.vector.lanes.f16", None, "states a peak"),
        ("npu", "sim.rows", 4, "makes levels.grid 32, where it is 64"),
        ("npu", "levels.grid", 32, "field `sim.rows`"),
        ("npu", "sim.clock_hz", 2.7e9, "field `sim.dram.bytes_per_cycle`"),
        ("npu", "units.matrix.flops.f16", 1e15, "field `sim.matrix.depth_per_cycle.f16`"),
        ("npu", "spaces.cache.bytes", 1024, "field `sim.shared.bytes`"),
        (
            "npu",
            "units.matrix.step",
            [24, 32, 32],
            "field `sim.matrix.rows` makes units.matrix.step 32",
        ),
        ("h200", "units.matrix.step", [24, 24, 24], "powers of two"),
        ("npu", "sim.queue_length", 2.5, "a whole number, 1 or more"),
        ("h200", "triton", None, "field `triton` is missing"),
        ("h200", "gpu", None, "field `gpu` is missing"),
        ("h200", "levels.warp", 64, "`levels.warp` is 64"),
        ("h200", "levels.warp", 16, "for backend 'cuda'"),
        ("mi300", "levels.warp", 128, "`levels.warp` is 128"),
        ("mi300", "triton.arch", 90, "for backend 'hip'"),
        ("h200", "triton.arch", "gfx942", "for backend 'cuda'"),
        ("h200", "triton.backend", "metal", "'cuda' or 'hip'"),
        ("h200", "gpu.clock", 1e9, "did you mean `clock_hz`?"),
        ("h200", "gpu.copies_async", 1, "true or false"),
        ("h200", "gpu.copy_threads_per_cycle", None, "is missing"),
        ("h200", "gpu.matrix_share_below", 1.5, "1 at most"),
        ("h200", "gpu.matrix_dtypes", ["f16", "f15"], "a list of"),
        ("h200", "gpu.matrix_dtypes", ["u8"], "`units.matrix.flops.u8` is missing"),
        ("h200", "gpu.instructions", ["mma_async"], "a list of"),
        ("mi300", "gpu.instructions", ["wgmma", "mma_sync"], "has 'mma_sync' of 32 threads"),
        ("h200", "gpu.instructions", ["mma_sync"], "has none for 'f8e4m3'"),
        ("h200", "gpu.shared_bytes_per_unit", 65536, "less than `spaces.shared.bytes`"),
        ("h200", "gpu.shared_reserved", 2048, "less than `spaces.shared.bytes` with"),
        ("h200", "spaces.cache", None, "`spaces.cache` is missing"),
        ("h200", "gpu.warps_per_unit", 16, "less than `levels.thread`"),
        ("h200", "gpu.programs_per_unit", 128, "more than `gpu.warps_per_unit`"),
        ("h200", "gpu.device_name", "", "the whole name of the device"),
        ("h200", "gpu.device_name", [], "the whole name of the device"),
        ("h200", "gpu.device_name", ["A", 3], "the whole name of the device"),
        ("h200", "spaces.register", None, "`spaces.register` is missing"),
        ("null", "null.launch", 1.0, "did you mean `launch_us`?"),
        ("npu", "triton", {"warp": 32}, "field `triton` is not known"),
        ("cpu", "cpp", {"threads": 2}, "table `[cpp]` is not read: backend `cpp` has no fields"),
    ],
)
def test_a_table_that_contradicts_itself_or_the_general_part_is_refused(
    name, path, value, what, tmp_path
):
    error, file = refused(tmp_path, name, path, value)
    assert what in str(error) and str(error).startswith(f"{file}: ")


def test_a_warp_is_one_of_the_compiler_s(tmp_path, monkeypatch):
    """Where no matrix instruction says how many threads a warp has."""
    monkeypatch.delitem(TABLES["mi300"]["gpu"], "instructions")
    error, _ = refused(tmp_path, "mi300", "levels.warp", 128)
    assert "for backend 'hip'" in str(error)


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_ours_is_as_its_backend_wants_it(name):
    found = target(name)
    assert {b for b in found.backends if REGISTRY.manifest(b).table} >= set(found.details) - {"gpu"}
