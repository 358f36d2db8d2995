"""Admission: every emitted source is admitted, and what reaches beyond a kernel is refused."""

import pytest

from backends.backend import BackendError
from backends.cutedsl.admission import require_admissible
from backends.cutedsl.testing.samples import CASES, backend, machine_of, nest_of, own_machine

ROWS = "rows"


def source(name):
    return backend().emit(nest_of(name), machine_of(own_machine(name)))


@pytest.mark.parametrize("name", CASES)
def test_an_emitted_source_is_admitted(name):
    require_admissible(source(name))


BODY = "    thread = cute.arch.thread_idx()[0]\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("    import os\n", "assignments, calls, loops and conditions alone"),
        ("    open(x_ptr)\n", "no name of the kernel or of the interface"),
        ("    y = __builtins__\n", "no name of the kernel or of the interface"),
        ("    y = x_ptr.__class__\n", "of `x_ptr` there may be"),
        ("    y = cute.jit\n", "of `cute` there may be"),
        ("    y = cute.arch.load(x_ptr, Int32)\n", "of `cute.arch` there may be"),
        ("    y = fn.cutlass\n", "of `fn` there may be"),
        ("    y = fn._type\n", "of `fn` there may be"),
        ("    y = 'import os'\n", "no strings"),
        ("    y = 1j\n", "a constant is a number"),
        ("    while True:\n        pass\n", "assignments, calls, loops and conditions alone"),
        ("    y = (lambda: 0)()\n", "what is called has a name"),
        ("    y = x_ptr.layout(0)\n", "called by `cute.crd2idx`"),
        ("    x_ptr.iterator = thread\n", "of `x_ptr` there may be"),
        ("    get = thread\n", "is a name of the interface"),
        ("    y = [z for z in {1: 2}]\n", "plain expressions"),
        ("    return\n", "assignments, calls, loops and conditions alone"),
        ("    del thread\n", "assignments, calls, loops and conditions alone"),
        ("    y = f'{thread}'\n", "plain expressions"),
        ("    with thread:\n        pass\n", "assignments, calls, loops and conditions alone"),
    ],
)
def test_what_reaches_beyond_a_kernel_is_refused(line, why):
    spoiled = source(ROWS).replace(BODY, BODY + line, 1)
    assert spoiled != source(ROWS)
    with pytest.raises(BackendError, match=why) as seen:
        require_admissible(spoiled)
    assert seen.value.stage == "build"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("import cutlass\n", "import cutlass\nimport os\n", "it may be"),
        ("import cutlass\n", "import cutlass\nprint(1)\n", "outside of kernels"),
        ("EVEN_M = True", "EVEN_M = open", "outside of kernels"),
        ("@cute.kernel", "@cute.jit", "marked @cute.kernel"),
        ("    K: Int32,", "    K: Int32 = 1,", "no defaults"),
        ("    M: Int32,", "    M: object,", "a parameter is a"),
        ("):\n    k_n", ") -> Int32:\n    k_n", "gives nothing back"),
        ("import cutlass\n", "import cutlass )\n", "no Python"),
    ],
)
def test_a_module_has_kernels_alone(before, after, why):
    text = source(ROWS)
    assert before in text
    with pytest.raises(BackendError, match=why):
        require_admissible(text.replace(before, after, 1))
