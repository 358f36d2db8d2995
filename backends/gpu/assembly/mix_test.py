"""Instruction counts of listings whose counts are known."""

import pytest

from backends.gpu.assembly import amdgcn, sass
from backends.gpu.assembly.mix import CLASSES, Classifier

SASS = """
 Function k:
  REG:40 STACK:16 SHARED:0 LOCAL:0 CONSTANT[0]:584 TEXTURE:0 SURFACE:0 SAMPLER:0
        /*0000*/                   LDC R1, c[0x0][0x28] ;      /* 0x00000a00ff017b82 */
        /*0010*/              @!PT LDS RZ, [RZ] ;              /* 0x0 */
        /*0020*/                   LDGSTS.E.BYPASS.128 [R19], desc[UR22][R14.64], P5 ;
        /*0030*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0040*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR12].tnspB, R24 ;
        /*0050*/                   MUFU.EX2 R4, R4 ;
        /*0060*/                   FFMA R4, R4, R4, R4 ;
        /*0070*/                   SHFL.BFLY PT, R4, R4, 0x1, 0x1f ;
        /*0078*/             @!UPT UIADD3 URZ, URZ, URZ, URZ ;
        /*0080*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0090*/               @P0 BRA 0x30 ;
        /*00a0*/                   BAR.SYNC.HOIST_BLOCKING 0x0 ;
        /*00b0*/                   LDSM.16.M88.4 R4, [R4] ;
        /*00c0*/                   UTMALDG.2D [UR8], [UR4] ;
        /*00d0*/                   STG.E desc[UR4][R2.64], R4 ;
        /*00e0*/                   EXIT ;
        /*00f0*/                   BRA 0xf0 ;
        /*0100*/                   NOP ;
"""
AMDGCN = """
k:
.LBB0_0:
\ts_load_dwordx4 s[0:3], s[4:5], 0x0
\ts_waitcnt lgkmcnt(0)
.LBB0_1:                                ; loop
\tbuffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
\tbuffer_load_dword v4, s[0:3], 0 offen lds
\tds_write_b128 v5, v[0:3]
\ts_barrier
\tv_mfma_f32_32x32x8_bf16_1k a[0:15], v[0:1], v[2:3], a[0:15]
\tv_exp_f32_e32 v6, v6
\tv_add_f32_dpp v6, v6, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
\ts_cbranch_scc1 .LBB0_1
\tds_bpermute_b32 v6, v7, v6
\tv_fma_f32 v6, v6, v6, v6
\tbuffer_store_dword v6, v7, s[0:3], 0 offen
\ts_endpgm
    .private_segment_fixed_size: 8
    .vgpr_count:     68
"""


def counts(**given):
    return dict.fromkeys(CLASSES, 0) | given


def test_a_listing_of_sass():
    code = sass.parsed(SASS)
    assert (code.registers, code.spills) == (40, 16)
    assert code.mix() == counts(
        matrix=1,
        load=1,
        store=1,
        copy_async=2,
        barrier=1,
        shuffle=1,
        special=1,
        arithmetic=2,
        shared=1,
        other=3,
    )
    assert code.loop_mix() == counts(matrix=1, load=1, shuffle=1, special=1, arithmetic=2, other=1)


def test_assembly_of_amd():
    code = amdgcn.parsed(AMDGCN)
    assert (code.registers, code.spills) == (68, 8)
    assert code.mix() == counts(
        matrix=1,
        load=1,
        store=1,
        copy_async=1,
        barrier=1,
        shuffle=2,
        special=1,
        arithmetic=1,
        shared=1,
        other=4,
    )
    assert code.loop_mix() == counts(
        matrix=1, load=1, copy_async=1, barrier=1, shuffle=1, special=1, shared=1, other=1
    )


def test_a_listing_without_its_facts_is_a_fault_of_ours():
    with pytest.raises(AssertionError, match="does not tell the registers"):
        sass.parsed("nothing")
    with pytest.raises(AssertionError, match="does not tell vgpr_count"):
        amdgcn.parsed("nothing")


def test_the_first_pattern_counts():
    given = Classifier([("load", "LD"), ("other", "L"), ("load", "X"), ("arithmetic", "[A-Z]")])
    assert [given(n) for n in ("LDG", "LEA", "XLD", "ADD", "9")] == [
        "load",
        "other",
        "load",
        "arithmetic",
        "other",
    ]
