"""Programs that run together give bit for bit what they give one by one."""

import numpy as np
import pytest

from backends.backend import Built
from backends.gpu.child import in_child
from backends.triton.interpret import interpreter
from backends.triton.interpret.programs import Programs

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
M, N = 24, 16
X = np.random.default_rng(3).standard_normal((M, N)).astype(np.float32)


def source(*lines):
    """A kernel with one program per row of x; `lines` compute v, [16], from u, its row m."""
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEAD}@triton.jit\ndef scale_0(x, y, N: tl.constexpr):\n"
        "    m = tl.program_id(0)\n    at = tl.arange(0, N)\n"
        f"    u = tl.load(x + m * N + at)\n{body}    tl.store(y + m * N + at, v)\n\n\n"
        f"def launch(x, y):\n    scale_0[({M},)](x, y, N={N})\n"
    )


@pytest.fixture
def outcome(nest_of, machine_of, tmp_path):
    """y, and whether all programs ran together; `alone` prevents that."""
    nest, machine = nest_of("scale", M=M, N=N), machine_of("h200")

    def run(text, alone=False, order=0):
        file = tmp_path / "kernel.py"
        file.write_text(text)

        def work():
            plain, found = Programs._together, [False]

            def together(*args):
                found[0] = not alone and plain(*args)
                return found[0]

            Programs._together = together
            sizes = {"M": M, "N": N}
            made = interpreter.interpreted(Built(file), nest, machine, sizes, {"x": X}, order)
            return made["y"], found[0]

        interpreter.warm()
        return in_child(work, 60, "check", tmp_path)

    return run


@pytest.mark.parametrize(
    "lines",
    [
        ["v = u * m"],
        ["v = tl.where(m % 3 == 0, u, -u)"],
        ["v = u", "for k in range(0, m % 5):", "    v += k"],
        ["v = u", "for k in tl.range(m, m + 4):", "    v = v * 2 + k"],
        ["v = u", "if m % 2 == 0:", "    v += 1.0", "if m > 5:", "    v *= 2.0"],
        ["v = u", "k = m", "while k > 3:", "    v += k", "    k = k // 2"],
        ["v = u - tl.max(u) + tl.sum(tl.load(x + at))"],
        ["v = tl.cumsum(u, 0) + tl.argmax(u, 0)"],
        ["w = u[:, None] * tl.load(x + at)[None, :]", "v = tl.sum(w, 1) + tl.sum(tl.trans(w), 1)"],
        ["v = tl.sum((u[:, None] * 2).broadcast_to(N, N), 1)"],
        ["v = tl.sum(tl.reshape(u[:, None] + tl.zeros([N, 4], tl.float32), [N * 4]), 0) + u"],
        ["v = tl.sum(tl.full([N, 4], 1.5, tl.float32) + u[:, None], 1)"],
        ["a = tl.broadcast_to(u[:, None], N, N)", "v = tl.sum(tl.dot(a, tl.trans(a)), 0)"],
        ["a, b = tl.split(tl.join(u, u * m))", "v = a + b"],
        ["v = tl.sort(u, 0) + tl.flip(u, 0)"],
        ["v = tl.gather(u, (at + m) % N, 0)"],
        ["v = tl.rand(m, at)"],
        ["tl.store(y + m * N + at, u)", "v = tl.load(y + m * N + at) + 1.0"],
    ],
)
def test_programs_at_once_give_the_same_bits(outcome, lines):
    at_once, together = outcome(source(*lines))
    one_by_one, _ = outcome(source(*lines), alone=True)
    assert together
    assert np.isfinite(one_by_one).all()
    np.testing.assert_array_equal(at_once, one_by_one)


@pytest.mark.parametrize(
    "lines",
    [
        ["tl.store(y + at, u)", "v = u"],
        ["v = tl.load(y + (m + 1) % 24 * N + at)"],
        ["tl.atomic_add(y + at, u)", "v = u"],
    ],
)
def test_programs_that_meet_run_one_by_one_as_ordered(outcome, lines):
    for order in (0, 2):
        y, together = outcome(source(*lines), order=order)
        one_by_one, _ = outcome(source(*lines), alone=True, order=order)
        assert not together
        np.testing.assert_array_equal(y, one_by_one)
