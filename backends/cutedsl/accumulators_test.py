"""Tensor memory of sm_100: what the compiler makes of it, without a GPU, and what spoiled texts do."""

import re

import pytest

from backends.backend import BackendError
from backends.cutedsl.testing.assembly import kernel_ptx
from backends.cutedsl.testing.machine import Deadlock
from backends.cutedsl.testing.samples import MACHINES, SIZES, backend, machine_of, nest_of
from backends.cutedsl.testing.twin import require_right
from testing.slow import slow_but

KINDS = {"accumulated_tf32": "tf32", "accumulated_eight": "f8f6f4"}
SPOILED = [  # of the text, and what finds it
    ("columns, matrix(", "columns + 16, matrix(", IndexError),
    ("where(k_from > 0, True, acc_begun == 1)", "True", BackendError),
    ("load_columns(columns, acc)", "load_columns(columns + 1, acc)", IndexError),
    ("signal_matmuls(done + issued", "signal_matmuls(done + (issued + 1)", Deadlock),
]


@pytest.mark.parametrize("name", slow_but(lambda name: name in ("accumulated", *KINDS), MACHINES))
def test_a_kernel_is_compiled_to_matmuls_in_tensor_memory(name):
    text = kernel_ptx(nest_of(name), machine_of("b200"))
    alloc = re.findall(r"tcgen05\.alloc\.cta_group::1\.\S+\s+\[[^]]+\], (%r\d+);", text)
    kinds = set(re.findall(r"tcgen05\.mma\.cta_group::1\.kind::(\w+)", text))
    assert len(alloc) == 1 and kinds == {KINDS.get(name, "f16")}
    assert "tcgen05.relinquish_alloc_permit.cta_group::1" in text
    assert "tcgen05.commit.cta_group::1.mbarrier::arrive::one" in text
    first = text.index("tcgen05.ld.sync.aligned.32x32b")
    assert first < text.index("tcgen05.wait::ld.sync.aligned") < text.index("tcgen05.dealloc")
    assert {"before", "after"} == set(re.findall(r"tcgen05\.fence::(\w+)_thread_sync", text))
    assert "wgmma" not in text and "mma.sync" not in text


def test_operands_are_described_as_they_lie():
    text = kernel_ptx(nest_of("accumulated"), machine_of("b200"))
    found = {
        int(d) & 0xFFFFFFFFFFFFFFFF for d in re.findall(r"or\.b64\s+\S+ \S+ (-?\d{15,});", text)
    }
    # x: rows of 64 bytes with a swizzle of these, groups of 8 rows 512 bytes apart, K contiguous. w: N
    # contiguous, in one panel of 128 bytes; groups of 8 rows along K lie 1024 bytes apart.
    version, of_64, of_128 = 1 << 46, 4 << 61, 2 << 61
    assert found == {version | of_64 | 32 << 32 | 1 << 16, version | of_128 | 64 << 32}


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "fault"), SPOILED)
def test_a_spoiled_text_is_found(before, after, fault):
    source = backend().emit(nest_of("accumulated", "b200", 2), machine_of("b200", 2))
    source = re.sub(r"\(\s+columns( \+ n_i)?,\s+matrix\(", "(columns, matrix(", source)
    assert before in source
    with pytest.raises(fault):
        require_right("accumulated", SIZES["accumulated"][0], source.replace(before, after))
