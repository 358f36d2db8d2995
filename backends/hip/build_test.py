"""Builds: errors with their lines, limits, one code object for each set of constants."""

from __future__ import annotations

import json
import re

import pytest

from backends.backend import BackendError
from backends.gpu.matrix.fragments import fragments
from backends.hip import build as building
from backends.hip import clang
from backends.hip.instructions import with_functions
from backends.hip.spelling import mfma
from backends.hip.testing.samples import (
    CASES,
    backend,
    emitted,
    machine_of,
    nest_of,
    source_of,
    work_of,
)
from backends.registry import REGISTRY
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule

MI300 = machine_of("mi300")


def built(source, folder, name="rows"):
    return backend().build(source, nest_of(name), MI300, folder)


def test_an_error_is_told_with_its_line(tmp_path):
    source = emitted("rows").replace("fn::exp2(", "fn::exp3(")
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "exp3" in text)
    with pytest.raises(BackendError) as seen:
        built(source, tmp_path)
    assert seen.value.stage == "build"
    assert seen.value.reason.startswith(f"kernel.hip, line {line}: no member named 'exp3'")


def test_a_source_without_a_launch_is_refused(tmp_path):
    with pytest.raises(BackendError, match="the source has no kernel `row_softmax_0`"):
        built(emitted("rows").replace(" row_softmax_0(", " row_softmax_1("), tmp_path)


def test_more_lds_than_there_is_is_refused(tmp_path, monkeypatch):
    small = {**building.facts(MI300), "shared_bytes_per_program": 1000}
    monkeypatch.setattr(building, "facts", lambda machine: small)
    with pytest.raises(BackendError, match="bytes of shared memory; there are 1000"):
        built(emitted("staged"), tmp_path, "staged")


def test_a_compiler_that_hangs_is_stopped(tmp_path, monkeypatch):
    def hang(*given):
        while True:
            pass

    monkeypatch.setattr(building, "SECONDS", 0.3)
    monkeypatch.setattr(clang, "assembly", hang)
    with pytest.raises(BackendError, match="still at it after 0.3 s"):
        built(emitted("rows"), tmp_path)


def test_a_source_is_compiled_alone(tmp_path):
    source, to = tmp_path / "kernel.hip", tmp_path / "made"
    source.write_text(emitted("staged"), encoding="utf-8")
    REGISTRY.compile("hip", source, MI300, to)
    assert to.read_bytes()[:4] == b"\x7fELF" and b"gfx942" in to.read_bytes()
    assert sorted(f.name for f in tmp_path.iterdir()) == ["kernel.hip", "made"]
    source.write_text(emitted("staged").replace("cdiv", "cdivided"), encoding="utf-8")
    with pytest.raises(BackendError, match="kernel.hip, line"):
        REGISTRY.compile("hip", source, MI300, to)


def accesses(file, sizes):
    """The number of accesses to tensors with 32-bit and with 64-bit offsets."""
    text = building.compiled(file, MI300, sizes).with_suffix(".s").read_text(encoding="utf-8")
    return text.count("\tbuffer_"), text.count("\tglobal_")


def test_masks_move_offsets_of_buffers_where_these_reach_all_elements(tmp_path):
    file = built(emitted("rows"), tmp_path).file
    near, far = accesses(file, {"M": 8, "K": 1001}), accesses(file, {"M": 1 << 20, "K": 1001})
    assert near[0] > 0 and near[1] == 0
    assert far[0] == 0 and far[1] == near[0]


def test_a_source_for_large_tensors_says_so():
    work = work_of("rows")
    schedule = parse_schedule(f"schedule({work.spec.name})\n{CASES['rows'][1]}\n")
    large = lower(work.spec, schedule, MI300, {"M": 1 << 20, "K": 1000})
    assert "#define FAR 1\n" in backend().emit(large, MI300)
    assert "FAR" not in emitted("rows")


def test_each_set_of_constants_has_its_code(tmp_path, monkeypatch):
    made = built(emitted("rows"), tmp_path)
    given = json.loads((tmp_path / building.LAUNCHES).read_text())
    assert given == building.launches(made.file)
    first = building.compiled(made.file, MI300, {"M": 8, "K": 1000})
    assert first.read_bytes()[:4] == b"\x7fELF"
    assert building.compiled(made.file, MI300, {"M": 12, "K": 1000}) == first
    assert building.compiled(made.file, MI300, {"M": 12, "K": 1001}) != first  # without vectors
    monkeypatch.setattr(clang, "assembly", None)  # an existing one is not compiled again
    assert building.compiled(made.file, MI300, {"M": 16, "K": 1000}) == first


def test_figures_are_those_of_each_launch(tmp_path):
    figures = built(emitted("ring"), tmp_path, "ring").figures
    name = nest_of("ring").launches[0].name
    assert figures[f"{name}.loop.matrix"] > 0 and figures[f"{name}.stages"] == 3
    assert figures["shared_bytes"] == figures[f"{name}.shared_bytes"] == 16384
    whole = figures[f"{name}.vector_registers"]
    assert figures["registers"] == whole >= figures[f"{name}.accumulation_registers"]
    assert 0 < figures[f"{name}.scalar_registers"] <= 106


def test_spills_are_seen_and_not_modelled(tmp_path):
    lines = ["  float a[600];", "  for (int n = 0; n < 600; ++n) a[n] = y_ptr[64 * n + thread];"]
    lines += ["  for (int r = 0; r < 9; ++r) {", "    __syncthreads();", "    #pragma unroll"]
    lines += ["    for (int n = 0; n < 600; ++n) a[n] = a[n] * a[(n + 7) % 600] + 1.0f;", "  }"]
    lines += ["  #pragma unroll", "  for (int n = 0; n < 600; ++n) y_ptr[64 * n + thread] = a[n];"]
    lines.insert(1, "  #pragma unroll")
    file = tmp_path / "kernel.hip"
    file.write_text(source_of("\n".join(lines)))
    clang.assembly(file, "gfx942", (), tmp_path / "k.s")
    (text,) = building.kernels((tmp_path / "k.s").read_text()).values()
    assert building.code(text).spills > 0


PAIRS = """  float a[8], b[8];
  load<8>(&a[0], y_ptr + thread * 8);
  load<8>(&b[0], y_ptr + 1024 + thread * 8);
  #pragma unroll
  for (int n = 0; n < 8; ++n) a[n] = {each};
  store<8>(y_ptr + thread * 8, &a[0]);"""


@pytest.mark.parametrize(
    ("each", "least", "kind"),
    [
        ("a[n] * 0.5f + b[n]", 4, "v_pk_fma_f32"),
        ("a[n] * b[n]", 4, "v_pk_mul_f32"),
        ("a[n] + b[n]", 4, "v_pk_add_f32"),
        ("fn::maximum(a[n], b[n])", 0, "v_max"),  # there is no packed maximum of f32
        ("fn::exp2(a[n])", 0, "v_exp_f32"),
    ],
)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_pairs_of_f32_are_packed_where_there_is_such_an_instruction(
    arch, each, least, kind, tmp_path
):
    file = tmp_path / "kernel.hip"
    file.write_text(source_of(PAIRS.format(each=each)), encoding="utf-8")
    clang.assembly(file, arch, (), tmp_path / "k.s")
    (text,) = building.kernels((tmp_path / "k.s").read_text(encoding="utf-8")).values()
    assert kind in text and building.packed(text) >= least
    assert least or "v_pk_max_f32" not in text and "v_pk_exp" not in text


@pytest.mark.parametrize(
    ("each", "packed"),
    [
        ("float(h[n]) * float(g[n])", "v_pk_mul_f16"),
        ("float(h[n]) + float(g[n])", "v_pk_add_f16"),
        ("float(h[n]) * float(g[n]) + 1.0f", ""),  # which is rounded once
    ],
)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_halves_are_computed_with_as_halves_where_the_bits_are_the_same(
    arch, each, packed, tmp_path
):
    """Equations are computed in f32. A single operation rounded to f16 gives the same either
    way."""
    body = "".join(
        f"  f16 {x}[8];\n  load<8>(&{x}[0], reinterpret_cast<const f16*>(y_ptr) + {at} + thread * 8);\n"
        for x, at in (("h", 0), ("g", 4096))
    )
    body += f"  for (int n = 0; n < 8; ++n) h[n] = {each};\n"
    body += "  store<8>(reinterpret_cast<f16*>(y_ptr) + thread * 8, &h[0]);"
    file = tmp_path / "kernel.hip"
    file.write_text(source_of(body), encoding="utf-8")
    text = clang.assembly(file, arch, (), tmp_path / "k.s")
    found = set(re.findall(r"\tv_pk_\w+_f16", text))
    assert found == ({f"\t{packed}"} if packed else set())


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_exchanges_are_modifiers_of_instructions_up_to_8_threads(arch, tmp_path):
    body = "  float x = y_ptr[thread];\n"
    body += "  #pragma unroll\n  for (int distance = 1; distance <= 32; distance *= 2)\n"
    body += "    x += shuffle_xor(x, distance);\n  y_ptr[thread] = x;"
    file = tmp_path / "kernel.hip"
    file.write_text(source_of(body), encoding="utf-8")
    text = clang.assembly(file, arch, (), tmp_path / "k.s")
    moves = ["quad_perm:[1,0,3,2]", "quad_perm:[2,3,0,1]", "row_half_mirror", "row_ror:8"]
    assert all(re.search(rf"\tv_\w+_dpp .*{re.escape(move)}", text) for move in moves)
    assert text.count("\tds_swizzle_b32") == text.count("\tds_bpermute_b32") == 1


def test_packed_instructions_are_figures(tmp_path):
    figures = built(emitted("rows"), tmp_path).figures
    assert figures[f"{nest_of('rows').launches[0].name}.packed"] > 0


def test_several_kernels_are_told_apart(tmp_path):
    file = tmp_path / "kernel.hip"
    one = source_of("  y_ptr[thread] = 1.0f;")
    file.write_text(
        one + source_of("  __syncthreads();").partition('"kernel.h"\n')[2].replace(" k(", " j(")
    )
    clang.assembly(file, "gfx942", (), tmp_path / "k.s")
    found = building.kernels((tmp_path / "k.s").read_text())
    assert set(found) == {"k", "j"}
    assert building.code(found["k"]).mix()["store"] == 1
    assert building.code(found["j"]).mix()["store"] == 0


@pytest.mark.parametrize("target", ["mi300", "mi350"])
def test_each_matrix_function_is_its_instruction(target, tmp_path):
    rows = with_functions(machine_of(target))
    names = {"f32": "float", "tf32": "float", "f64": "double", "i32": "i32"}
    blocks = []
    for row in rows:
        counts = [fragments(row).c[1].size, fragments(row).a[1].size, fragments(row).b[1].size]
        held = list(zip("cab", (row.c, row.a, row.b), counts, strict=True))
        made = [
            f"{names.get(o.dtype, o.dtype)} {x}[{n}]; load<{n}>(&{x}[0], reinterpret_cast<const "
            f"{names.get(o.dtype, o.dtype)}*>(y_ptr) + thread * {n});"
            for x, o, n in held
        ]
        words = ", ".join(f"{x}[{n}]" for x, _, count in held for n in range(count))
        words += ", f8e8m0(y_ptr[thread]), f8e8m0(y_ptr[1])" if row.block else ""
        made.append(f"{mfma(row.name)}({words}); for (int n = 0; n < {counts[0]}; ++n)")
        made.append("y_ptr[thread + n] = float(c[n]);")
        blocks.append("{ " + " ".join(made) + " }")
    source, to = tmp_path / "kernel.hip", tmp_path / "made.s"
    source.write_text(source_of("\n".join(blocks)), encoding="utf-8")
    text = clang.assembly(source, machine_of(target).details["hip"]["arch"], [], to)
    assert len(rows) > 10
    for row in rows:
        assert row.name in text, f"{row.name} {row.a.dtype}"
