"""Sources compiled for targets that are not present, and checks on what the compiler accepts."""

import pytest
import triton

from backends.backend import BackendError
from backends.gpu.assembly.mix import CLASSES
from backends.triton.build import compile

SHAPE = dict(M=64, N=100)
PRODUCT = dict(M=512, N=256, K=512)
ODD = (dict(K=511), dict(K=509), dict(N=255))


@pytest.fixture
def built(nest_of, machine_of, source_of, tmp_path):
    def make(source, nest="scale", target="h200", launches=1, change=None, **sizes):
        text = source_of(source)
        if change:
            assert change[0] in text
            text = text.replace(*change)
        nest = nest_of(nest, launches, **(sizes or SHAPE))
        return compile.build(text, nest, machine_of(target), tmp_path)

    return make


@pytest.mark.parametrize(
    ("target", "registers", "copies"), [("h200", (32, 128), True), ("mi300", (32, 256), False)]
)
def test_the_figures_of_a_product(built, target, registers, copies):
    figures = built("matmul", "matmul", target, **PRODUCT).figures
    assert all(isinstance(f, float) for f in figures.values())
    low, high = registers
    assert low <= figures["matmul_0.registers"] <= high
    assert figures["matmul_0.spills"] == 0
    assert figures["matmul_0.warps"] == 4
    assert figures["matmul_0.stages"] == 3
    assert figures["matmul_0.grid"] == 8 * 4
    assert 2 * (64 * 32 * 2) * 2 <= figures["matmul_0.shared_bytes"] <= 65_536
    assert 0 < figures["matmul_0.occupancy"] <= 1
    assert figures["matmul_0.programs"] >= 1
    mix = {name: figures[f"matmul_0.mix.{name}"] for name in CLASSES}
    loop = {name: figures[f"matmul_0.loop.{name}"] for name in CLASSES}
    assert sum(mix.values()) == figures["matmul_0.instructions"]
    assert all(loop[name] <= mix[name] for name in CLASSES)
    assert loop["matrix"] > 0
    assert bool(mix["copy_async"]) == copies
    assert mix["store"] > 0 and loop["store"] == 0
    assert figures["registers"] == figures["matmul_0.registers"]
    assert figures["compile_seconds"] > 0


@pytest.mark.parametrize(
    ("target", "option", "most"), [("h200", "maxnreg=128", 128), ("mi300", "waves_per_eu=4", 128)]
)
def test_a_limit_of_registers_is_kept(built, target, option, most):
    small, large = ("BM=64, BN=64, BK=32", "BM=128, BN=128, BK=32")
    found = [
        built("matmul", "matmul", target, change=(small, f"{large}{more}"), **PRODUCT).figures
        for more in ("", f", {option}")
    ]
    free, kept = (one["matmul_0.registers"] for one in found)
    assert kept <= most < free


@pytest.mark.parametrize("target", ["h200", "mi300"])
@pytest.mark.parametrize(
    ("source", "sizes"),
    [("row_max", dict(M=64, N=100)), ("bag", dict(V=100, D=32, L=64, B=16))],
)
def test_figures_of_a_reduction_and_a_gather(built, target, source, sizes):
    figures = built(source, source, target, **sizes).figures
    assert figures[f"{source}_0.mix.load"] > 0
    assert figures[f"{source}_0.mix.matrix"] == 0
    assert figures["spills"] == 0


def test_divisibility_is_that_of_the_launch(built):
    """Rows of 512 bf16 load 16 bytes at a time; rows of 511 cannot."""
    wide = built("matmul", "matmul", **PRODUCT).figures
    odd = built("matmul", "matmul", **(PRODUCT | dict(N=255, K=511))).figures
    assert wide["matmul_0.mix.copy_async"] > 0
    assert odd["matmul_0.mix.copy_async"] == 0


@pytest.fixture
def note(monkeypatch, tmp_path):
    """A file with a line for each kernel that a child compiles; of one, only files are seen here."""
    noted = tmp_path / "compiled"

    def told(**_):
        with noted.open("a") as file:
            file.write("one\n")

    monkeypatch.setattr(triton.knobs.runtime, "jit_post_compile_hook", told)
    return noted


def test_equal_launches_are_compiled_once(built, note):
    once = "    scale_0[(triton.cdiv(M * N, 256),)](x, y, M, N, BLOCK=256, num_warps=4)\n"
    other = once.replace("BLOCK=256", "BLOCK=512")
    built("scale", launches=4, change=(once, once * 3 + other))
    assert note.read_text().count("one") == 2


def test_what_other_sizes_need_is_compiled_ahead(built, nest_of, machine_of, note):
    file = built("matmul", "matmul", **PRODUCT).file
    nest, machine = nest_of("matmul", **PRODUCT), machine_of("h200")
    every = [PRODUCT, *(PRODUCT | changed for changed in ODD)]
    assert note.read_text().count("one") == 1
    compile.compile_at(file, nest, machine, every)
    assert note.read_text().count("one") == 3  # two of three are odd in the same size
    code = {f: f.stat().st_mtime_ns for f in (file.parent / compile.CACHE).rglob("*.cubin")}
    assert len(code) == 3
    compile.compile_at(file, nest, machine, every)  # what is in the cache is not compiled again
    assert code == {f: f.stat().st_mtime_ns for f in (file.parent / compile.CACHE).rglob("*.cubin")}


def test_what_is_not_compiled_ahead_says_why(source_of, nest_of, machine_of, tmp_path):
    text = source_of("scale").replace("BLOCK=256", "BLOCK=triton.next_power_of_2(N)")
    text = text.replace("    inside", "    tl.static_assert(BLOCK <= 128)\n    inside", 1)
    nest, machine = nest_of("scale", **SHAPE), machine_of("h200")
    file = compile.build(text, nest, machine, tmp_path).file
    with pytest.raises(BackendError, match="static_assert|BLOCK <= 128") as seen:
        compile.compile_at(file, nest, machine, [dict(M=3, N=90), dict(M=3, N=200)])
    assert seen.value.stage == "build"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("aborts", "died of SIGABRT"),
        ("says_error", "reported an error and went on: kernel.s:1:2: error"),
        ("unknown_option", "threads"),
        ("too_many_warps", "warps"),
        ("refused", "unsupported AST node type: Dict"),
        ("bad_assembly", "no_such_instruction|ptxas"),
    ],
)
def test_a_source_that_does_not_compile_says_why(built, source, words):
    with pytest.raises(BackendError, match=words) as seen:
        built(source)
    assert seen.value.stage == "build"


def test_assembly_that_is_only_complained_of_is_refused(built):
    with pytest.raises(BackendError, match="error: invalid instruction"):
        built("bad_assembly", target="mi300")


@pytest.mark.parametrize("source", ["hangs", "hangs_compiling"])
def test_a_source_that_hangs_is_ended(built, source, monkeypatch):
    monkeypatch.setattr(compile, "SECONDS", 2.0)
    with pytest.raises(BackendError, match="still at it after 2 s"):
        built(source)


@pytest.mark.parametrize("target", ["h200", "mi300"])
def test_too_much_shared_memory_is_refused(built, target):
    change = (
        "BM=64, BN=64, BK=32, num_warps=4, num_stages=3",
        "BM=128, BN=128, BK=128, num_warps=8, num_stages=5",
    )
    with pytest.raises(BackendError, match="bytes of shared memory; there are"):
        built("matmul", "matmul", target, change=change, **PRODUCT)


def test_a_source_launches_what_the_nest_says(built):
    with pytest.raises(BackendError, match="launches scale_0; expected scale_0, scale_1"):
        built("scale", launches=2)


def test_a_source_without_a_launch_function_is_refused(built):
    with pytest.raises(BackendError, match="no function `launch`"):
        built("scale", change=("def launch", "def start"))


def test_a_source_that_is_no_python_is_refused(built):
    with pytest.raises(BackendError, match="is no Python"):
        built("scale", change=("def launch(x, y):", "def launch(x, y:"))
