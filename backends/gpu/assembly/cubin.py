"""A direct reader of cubins, which finds the class of each instruction by its opcode.

NVIDIA's disassembler takes 0.4 s of CPU time for any program. This reader takes a millisecond, and
gives up at an unknown opcode. Instructions have 128 bits (sm_70 and later): the opcode is in bits 0
to 8, the predicate in bits 12 to 15. The opcodes were derived from the disassembler's output for
sm_80, sm_90a and sm_100a, which agree.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from backends.gpu.assembly.mix import Code
from backends.gpu.assembly.sass import classified

OPERATIONS = """
002 MOV  003 P2R  004 R2P  005 CS2R  006 VOTE  007 SEL  008 FSEL  009 FMNMX  00b FSETP
00c ISETP  00f VIMNMX3  010 IADD3  011 LEA  012 LOP3  013 IABS  016 PRMT  017 IMNMX  019 SHF
01a SGXT  01c PLOP3  020 FMUL  021 FADD  023 FFMA  024 IMAD  025 IMAD  027 IMAD  028 DMUL
029 DADD  02a DSETP  02b DFMA  02f ELECT  030 HADD2  031 HFMA2  032 HMUL2  035 HFMA2  036 VIADD
037 IMMA  03b LDSM  03c HMMA  03e F2FP  03f DMMA  044 STSM  045 I2FP  046 VIADDMNMX  048 VIMNMX
049 FFMA2  04a FMUL2  04b FADD2  04c UVIRTCOUNT  076 FMNMX3  082 UMOV  083 UP2UR  086 VOTEU
087 USEL  08c UISETP  090 UIADD3  091 ULEA  092 ULOP3  096 UPRMT  097 UIADD3  099 USHF  09a USGXT
09c UPLOP3  0a4 UIMAD  0a5 UIMAD  0b9 ULDC  0bd UFLO  0ca R2UR  0cc CREDUX  100 FLO  102 FCHK
104 F2F  105 F2I  106 I2F  107 FRND  108 MUFU  109 POPC  110 F2F  111 F2I  112 I2F  118 NOP
119 S2R  11a DEPBAR  11d BAR  141 BSYNC  142 BREAK  144 CALL  145 BSSY  147 BRA  148 WARPSYNC
14d EXIT  150 RET  15c BPT  15d NANOSLEEP  181 LDG  182 LDC  183 LDL  184 LDS  186 STG  187 STL
188 STS  189 SHFL  18c ATOMS  18f CCTL  192 MEMBAR  1a3 ATOMG  1a7 SYNCS  1a8 ATOMG  1a9 ATOMG
1ab ERRBAR  1ac LDCU  1ae LDGSTS  1af LDGDEPBAR  1b1 SYNCS  1b2 SYNCS  1b4 UTMALDG  1b5 UTMASTG
1b7 UTMACMDFLUSH  1c2 R2UR  1c3 S2UR  1c4 REDUX  1c5 WARPGROUP  1c6 FENCE  1e3 UTCATOMSWS  1e9 UTCBAR
1ea UTCHMMA  1ed STTM  1ee LDTM  1f0 HGMMA  1f1 IGMMA  1f3 QGMMA
"""

_NAMES = {int(code, 16): name for code, name in zip(*[iter(OPERATIONS.split())] * 2, strict=True)}
_BRANCH, _NEVER = 0x147, 0xF
_WIDE_BRANCH = 90  # from this architecture on, branch offsets count instructions; before, bytes
_BYTES = 16
_REGISTERS, _FRAME = b"\x04\x2f\x08\x00", b"\x04\x11\x08\x00"  # function attributes
_OF_FUNCTION = (_REGISTERS, _FRAME)
_INFO, _TEXT = ".nv.info", ".text."


class Unknown(Exception):
    """Something that this reader does not know; a disassembler may know it."""


def parsed(cubin: bytes, arch: int) -> Code:
    """The code of a cubin with one kernel. Raises Unknown where it cannot be read."""
    found = functions(cubin, arch)
    if len(found) != 1:
        raise Unknown(f"{len(found)} functions")
    return next(iter(found.values()))


def functions(cubin: bytes, arch: int) -> dict[str, Code]:
    """The code of all kernels of a cubin by name. Raises Unknown where one cannot be read."""
    sections = dict(_sections(cubin))
    texts = {name.removeprefix(_TEXT): s for name, s in sections.items() if name.startswith(_TEXT)}
    if _INFO not in sections:
        raise Unknown(f"{len(texts)} functions")
    symbols = _symbols(sections) if len(texts) > 1 else {}
    info = sections[_INFO]
    return {
        name: _code(text, arch, *(_attribute(info, a, symbols.get(name)) for a in _OF_FUNCTION))
        for name, text in texts.items()
    }


def _code(text: bytes, arch: int, registers: int, spills: int) -> Code:
    """Classifies the instructions of a program."""
    classes: list[str] = []
    at: list[int] = []
    loops: list[tuple[int, int]] = []
    for number, (low, high) in enumerate(struct.iter_unpack("<QQ", text)):
        at.append(len(classes))
        name = _NAMES.get(low & 0x1FF)
        if name is None:
            raise Unknown(f"the operation {low & 0x1FF:#x}")
        if name == "NOP" or (low >> 12) & 0xF == _NEVER:
            continue
        if low & 0x1FF == _BRANCH:
            target = number + 1 + _jump(low, high, arch)
            if target == number:  # the padding branch at the end of a program, never reached
                continue
            if 0 <= target < number:
                loops.append((at[target], len(classes)))
        classes.append(classified(name))
    return Code(registers, spills, tuple(classes), tuple(loops))


def _jump(low: int, high: int, arch: int) -> int:
    """The distance of a branch in instructions, from the next one."""
    far = low >> 34 | (high & 0x3FFFF) << 30
    far -= (far >> 47) << 48
    step = (far << 8 | (low >> 16 & 0xFF)) if arch >= _WIDE_BRANCH else far
    return 4 * step // _BYTES


def _attribute(info: bytes, name: bytes, symbol: int | None) -> int:
    """The largest value of an attribute, of one function if a symbol is given. An entry has a name,
    a function and a value."""
    entries = [
        struct.unpack_from("<II", info, at + 4)
        for at in range(0, len(info) - 11, 4)
        if info[at : at + 4] == name
    ]
    found = [value for function, value in entries if symbol in (None, function)]
    if not found:
        raise Unknown(f"no attribute {name.hex()}")
    return max(found)


def _symbols(sections: Mapping[str, bytes]) -> dict[str, int]:
    """The number of each symbol by name."""
    names = sections.get(".strtab", b"")
    starts = (n for n, *_ in struct.iter_unpack("<IBBHQQ", sections.get(".symtab", b"")))
    return {names[s : names.index(b"\0", s)].decode(): n for n, s in enumerate(starts)}


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each section of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * n) for n in range(count)]
    strings = headers[names][4]
    for name, kind, _, _, offset, length in headers:
        start = strings + name
        text = elf[start : elf.index(b"\0", start)].decode()
        yield text, b"" if kind == _NOTHING else elf[offset : offset + length]


_NOTHING = 8  # SHT_NOBITS: the section has no bytes in the file
