"""Solutions that cheat, with the reasons for their refusal, and the command that judges."""

import json
import os
import subprocess
import sys

import pytest

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.softmax(x * self.scale, dim=-1)

batch_size = 6
features = 40

def get_inputs():
    return [torch.randn(batch_size, features)]

def get_init_inputs():
    return [2.0]
"""
SOLUTION = """
import os, sys, time, torch

class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.calls = 0

    def forward(self, x):
        right = torch.softmax(x * self.scale, dim=-1)
        self.calls += 1
        CHEAT
"""
TRITON = """
import torch, triton
import triton.language as tl

@triton.jit
def soft(x_ptr, y_ptr, scale, N, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N, other=float("-inf")) * scale
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * N + at, e / tl.sum(e, 0), mask=at < N)

class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        soft[(x.shape[0],)](x, y, self.scale, x.shape[1], BLOCK=block)
        return y
"""
LISTED = "--listed-shape"
# What `forward` does with the correct result, the kind and words of the refusal, and options.
CHEATS = {
    "an output that is kept": (
        "if self.calls == 1: self.kept = right\n        return self.kept",
        "still",
        "does not change when the inputs do",
        [LISTED],
    ),
    "a constant": ("return torch.zeros_like(x)", "wrong", "at [0, 0] is 0.0", [LISTED]),
    "right at the listed shape alone": (
        "return right if x.shape == (6, 40) else torch.zeros_like(x)",
        "wrong",
        "batch_size=",
        [],
    ),
    "right for two calls alone": (
        "return right if self.calls < 3 else right.flip(0)",
        "wrong",
        "the result",
        [LISTED],
    ),
    "comparisons that are patched": (
        "import numpy\n        for m in (torch, numpy):\n"
        "            m.allclose = m.isclose = m.array_equal = lambda *a, **k: True\n"
        "        torch.equal = torch.Tensor.equal = lambda *a: True\n        return x",
        "wrong",
        "are off",
        [LISTED],
    ),
    "a clock that is patched": (
        "sleep = time.sleep\n        time.time = time.monotonic = time.perf_counter = lambda: 0.0\n"
        "        sleep(7200)\n        return right",
        "time-out",
        "in 3 s",
        [LISTED, "--seconds=3"],
    ),
    "a loop without end": (
        "while True: pass",
        "time-out",
        "in 3 s",
        [LISTED, "--seconds=3"],
    ),
    "an early exit with a forged line": (
        "print('{\"accepted\": true}', flush=True)\n        os._exit(0)",
        "exit",
        "exit code 0 and no answer",
        [LISTED],
    ),
    "an exception for exits": ("sys.exit(0)", "exit", "exit code 0", [LISTED]),
    "a result that is forged on the line": (
        "for n in range(3, 64):\n            try: os.write(n, b'x' * 64)\n"
        "            except OSError: pass\n        return right",
        "forged",
        "no result",
        [LISTED],
    ),
    "writes over the problem": (
        "open(PROBLEM_FILE, 'w').write('')",
        "raises",
        "Error",
        [LISTED],
    ),
    "inputs that are changed": (
        "x.zero_()\n        return right",
        "changes inputs",
        "input 0",
        [LISTED],
    ),
    "memory": (
        "held = [bytearray(1 << 28) for _ in range(64)]\n        return right",
        "memory",
        "MemoryError",
        [LISTED, "--memory=1"],
    ),
    "a crash": ("import ctypes\n        ctypes.string_at(0)", "crash", "SIGSEGV", [LISTED]),
    "16 bits": (
        "return torch.softmax((x * self.scale).bfloat16(), -1).float()",
        "wrong",
        "the result",
        [LISTED],
    ),
    "no maximum": (
        "e = torch.exp(x * self.scale)\n        return e / e.sum(-1, keepdim=True)",
        "wrong",
        "draw `",
        [LISTED],
    ),
    "another dtype": ("return right.double()", "form", "torch.float64", [LISTED]),
    "an object that equals all": (
        "class Any:\n            __eq__ = lambda *a: True\n        return Any()",
        "form",
        "Any",
        [LISTED],
    ),
    "a tensor that computes when it is read": (
        "class Lazy(torch.Tensor):\n            detach = lambda self: right\n"
        "        return torch.empty(0).as_subclass(Lazy)",
        "form",
        "the result is Lazy",
        [LISTED],
    ),
    "a connection": (
        "import socket\n        socket.create_connection(('127.0.0.1', 80), 2)",
        "raises",
        "Error",
        [LISTED],
    ),
    "the memory of the judge": (
        "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)\n        return right",
        "raises",
        "at `call` it raises",
        [LISTED],
    ),
    "no kernel of its own": ("return right", "no own kernel", "PyTorch", [LISTED, "--own"]),
    "a tensor that is nowhere": ("return right.to('meta')", "form", "on meta", [LISTED]),
    "a frame of its own on the judge's line": (
        "import gc\n        from benchmarks.foreign.frames import Line\n"
        "        line = next(o for o in gc.get_objects() if isinstance(o, Line))\n"
        "        line.send({'kind': 'result', 'own': [], 'operators': []}, [right, [x + 1]])\n"
        "        return right",
        "changes inputs",
        "input 0",
        [LISTED],
    ),
    "a copy that is patched": (
        "torch.Tensor.detach = lambda t: right\n        return torch.zeros_like(x)",
        "changes inputs",
        "input 0",
        [LISTED],
    ),
    "a signal that ends it": (
        "import signal\n        signal.signal(signal.SIGALRM, lambda *a: os._exit(0))\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.01)\n        time.sleep(0.5)\n        return right",
        "exit",
        "exit code 0 and no answer",
        [LISTED],
    ),
    "the judge's command line": (
        "found = [open(f'/proc/{p}/cmdline', 'rb').read() for p in os.listdir('/proc') if p.isdigit()]\n"
        "        raise ValueError([f for f in found if b'words of a secret' in f])",
        "raises",
        "ValueError: []",
        [LISTED, "--secret=words of a secret"],
    ),
    "one element by a thousandth": (
        "right[3, 7] *= 1.001\n        return right",
        "wrong",
        "at [3, 7]",
        [LISTED],
    ),
    "a library that is not here": (
        "import a_library_that_nobody_has",
        "toolchain",
        "toolchain absent: the Python package `a_library_that_nobody_has`",
        [LISTED],
    ),
}


@pytest.fixture
def judge(tmp_path):
    """Runs the command on a solution. Returns its exit code and its JSON output."""
    problem = tmp_path / "problem.py"
    problem.write_text(PROBLEM)

    def run(source, *options, file=problem):
        solution = tmp_path / "solution_file.py"
        solution.write_text(source.replace("PROBLEM_FILE", repr(str(problem))))
        path = os.pathsep.join(p or os.getcwd() for p in sys.path)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.judge", "--json", "--problem", str(file)]
            + ["--solution", str(solution), *options],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.stdout, done.stderr
        assert problem.read_text() == PROBLEM
        return done.returncode, json.loads(done.stdout)

    return run


def cheat(lines):
    return SOLUTION.replace("CHEAT", lines)


# What `forward` may do with the correct result.
HONEST = {
    "a view that is expanded": "return right.unsqueeze(0).expand(1, -1, -1)[0]",
    "strides of its own": "return right.t().contiguous().t()",
    "a parameter": "return torch.nn.Parameter(right)",
    "a result that wants gradients": "return right.requires_grad_()",
    "a lazy negation": "return torch._neg_view(-right)",
    "a copy that is changed in place": "y = x.clone()\n        y.mul_(self.scale)\n        return torch.softmax(y, -1)",
    "another default dtype": "torch.set_default_dtype(torch.float64)\n        return right",
    "a thread that stays": "import threading\n        threading.Thread(target=time.sleep, args=(7200,)).start()\n        return right",
}
