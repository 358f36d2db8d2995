"""The cubin reader agrees with the disassembler for all supported generations."""

import struct

import pytest

from backends.gpu.assembly import cubin, sass
from backends.gpu.assembly.mix import CLASSES
from backends.triton.build import compile

PRODUCT = dict(M=512, N=256, K=512)


@pytest.fixture(params=["a100", "h200", "b200"])
def compiled(request, nest_of, machine_of, source_of, tmp_path):
    """The cubin of a matmul, its architecture and the build's figures."""
    machine = machine_of(request.param)
    nest = nest_of("matmul", **PRODUCT)
    built = compile.build(source_of("matmul"), nest, machine, tmp_path)
    (file,) = tmp_path.rglob("*.cubin")
    return file, machine.details["triton"]["arch"], built.figures


def test_it_agrees_with_the_disassembler(compiled):
    file, arch, figures = compiled
    code = cubin.parsed(file.read_bytes(), arch)
    assert code == sass.code(file, compile.CUOBJDUMP)
    assert code.loops and code.mix()["matrix"]
    assert code.mix() == {name: figures[f"matmul_0.mix.{name}"] for name in CLASSES}


def test_an_unknown_operation_is_left_to_the_disassembler(
    nest_of, machine_of, source_of, tmp_path, monkeypatch
):
    monkeypatch.setattr(cubin, "_NAMES", {})
    nest = nest_of("scale", M=64, N=100)
    built = compile.build(source_of("scale"), nest, machine_of("h200"), tmp_path)
    assert built.figures["scale_0.mix.store"] == 1


def elf(*sections):
    """A file with some sections; only what is read is valid."""
    names = b"\0".join(name for name, _ in sections) + b"\0"
    bodies = [*(body for _, body in sections), names]
    offsets, place = [], 64
    for body in bodies:
        offsets.append(place)
        place += len(body)
    headers = b""
    for n, body in enumerate(bodies):
        at = names.index(sections[n][0]) if n < len(sections) else len(names) - 1
        headers += struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, offsets[n], len(body), 0, 0, 0, 0)
    head = bytearray(64)
    struct.pack_into("<Q", head, 40, place)
    struct.pack_into("<HHH", head, 58, 64, len(bodies), len(sections))
    return bytes(head) + b"".join(bodies) + headers


def instruction(code, predicate=7):
    return struct.pack("<QQ", code | predicate << 12, 0)


INFO = b"".join(
    struct.pack("<4sII", name, 1, n)
    for name, n in ((b"\x04\x2f\x08\x00", 40), (b"\x04\x11\x08\x00", 16))
)


def test_registers_frames_and_what_never_runs():
    body = instruction(0x23) + instruction(0x184, 0xF) + instruction(0x118) + instruction(0x14D)
    code = cubin.parsed(elf((b".nv.info", INFO), (b".text.k", body)), 90)
    assert (code.registers, code.spills) == (40, 16)
    assert code.classes == ("arithmetic", "other")


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (((b".nv.info", INFO), (b".text.k", instruction(0x1FF))), "the operation 0x1ff"),
        (((b".nv.info", INFO), (b".text.a", b""), (b".text.b", b"")), "2 functions"),
        (((b".nv.info", b""), (b".text.k", b"")), "no attribute"),
    ],
)
def test_what_is_not_known_is_said(sections, words):
    with pytest.raises(cubin.Unknown, match=words):
        cubin.parsed(elf(*sections), 90)
