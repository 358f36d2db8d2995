"""Emitted texts are admitted; texts that leave the work to others, or keep state, are refused."""

from pathlib import Path

import pytest

from backends.backend import BackendError
from backends.emit import Templates
from backends.triton.build.admission import require_admissible

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.py"))
TEXT = '''"""A kernel."""

import torch
import triton
import triton.language as tl

WIDE = 128


@triton.jit
def twice_0(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < N)
    KERNEL
    tl.store(y_ptr + offs, x.to(tl.float32) * 2.0, mask=offs < N)


def launch(x, y):
    """Writes y."""
    N = x.shape[0]
    LAUNCH
    twice_0[(triton.cdiv(N, WIDE),)](x, y, N, BLOCK=WIDE)


def twice(x):
    """Twice x."""
    y = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    launch(x, y)
    return y
'''
CHECK = "\n\n" + Templates("triton").render("require.py.j2")


def text(kernel="pass", launch="pass", outside=""):
    return TEXT.replace("KERNEL", kernel).replace("LAUNCH", launch) + outside


@pytest.mark.parametrize("file", GOLDEN, ids=[f.stem for f in GOLDEN])
def test_what_is_emitted_is_admitted(file):
    require_admissible(file.read_text())


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"kernel": "x = tl.where(x > 0, x, 0.0)"},
        {
            "kernel": "i = tl.atomic_add(x_ptr + N * 2 + N, 1)\n    tl.store(y_ptr + i + N, tl.load(x_ptr))"
        },
        {
            "kernel": "more(x_ptr, y_ptr, N)",
            "outside": "\n@triton.jit\ndef more(a, b, n):\n    tl.store(b + n, tl.load(a))\n",
        },
        {
            "kernel": "more(x_ptr, y_ptr, N)",
            "outside": "\n@triton.jit\ndef more(a, b, n):\n    tl.atomic_add(a + n, tl.load(b + n))\n",
        },
        {"launch": "if N % 2: raise ValueError('odd')"},
        {"launch": "grid = [max(1, n) for n in range(3)]"},
        {"outside": "\nSCALE = tl.constexpr(2.0)\n"},
        {"outside": CHECK},
    ],
)
def test_kernels_launches_and_numbers_are_admitted(parts):
    require_admissible(text(**parts))


REFUSED = {
    "a library's product": {"launch": "torch.mul(x, 2, out=y)"},
    "a tensor's own": {"launch": "y.copy_(x)"},
    "an operator of torch": {"launch": "y.add(x)"},
    "what another computed": {"launch": "y = torch.compile(launch)"},
    "a file": {"launch": "open('/etc/passwd')"},
    "an import": {"launch": "import os"},
    "an import outside": {"outside": "\nimport time\n"},
    "a part of a library": {"outside": "\nfrom torch import matmul\n"},
    "a way around": {"launch": "__import__('os')"},
    "hidden members": {"launch": "x.__class__"},
    "names by text": {"launch": "getattr(x, 'add')(x)"},
    "a fallback": {"launch": "try:\n        pass\n    except ValueError:\n        pass"},
    "state in a function": {"launch": "launch.kept = x"},
    "state in a global": {"launch": "global WIDE"},
    "state in a dictionary": {"outside": "\nKEPT = {}\n"},
    "state in a default": {"outside": "\ndef kept(x, seen=[]):\n    return seen\n"},
    "a store into a tensor": {"launch": "y[0] = 1.0"},
    "work when it is loaded": {"outside": "\nprint('loaded')\n"},
    "another decorator": {"outside": "\n@torch.compile\ndef f(x):\n    return x\n"},
    "a lambda": {"launch": "f = lambda: x"},
    "torch in a kernel": {"kernel": "x = torch.empty(3)"},
    "the mode of the caller": {"launch": "torch.is_grad_enabled()"},
    "a tensor's wish for gradients": {"launch": "x.requires_grad"},
    "another check": {"outside": CHECK.replace("fits = False", "fits = 2")},
    "a sum into what is stored": {"kernel": "tl.atomic_add(y_ptr + N, 1.0)"},
    "such a sum by another name": {
        "kernel": "p = y_ptr\n    p += 4\n    tl.store(p, 0.0)\n    tl.atomic_max(tl.multiple_of(y_ptr, 4), 1)"
    },
    "such a sum by a method": {"kernel": "(y_ptr + N).atomic_add(1.0)"},
    "such a sum by a keyword": {"kernel": "tl.atomic_add(val=1.0, pointer=y_ptr + N)"},
    "such a sum by a method of a method": {
        "kernel": "tl.broadcast_to(y_ptr, [1]).reshape([1]).atomic_add(1.0)"
    },
    "such a sum of what is compared elsewhere": {
        "kernel": "if BLOCK < 0:\n        q = y_ptr * 2\n    tl.atomic_add(y_ptr, 1.0)"
    },
    "such a sum by one of two names": {"kernel": "p, q = y_ptr, N\n    tl.atomic_add(p, 1.0)"},
    "such a sum of a choice": {"kernel": "tl.atomic_add(x_ptr if N > 3 else y_ptr, 1.0)"},
    "such a sum by another kernel": {
        "kernel": "more(1.0, at=y_ptr)",
        "outside": "\n@triton.jit\ndef more(value, at):\n    tl.atomic_add(at, value)\n",
    },
    "such a sum where another kernel says": {
        "kernel": "tl.atomic_add(same(y_ptr), 1.0)",
        "outside": "\n@triton.jit\ndef same(at):\n    return at\n",
    },
    "a class": {"outside": "\nclass Own:\n    pass\n"},
    "no Python": {"outside": "\ndef ("},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_let_others_do_the_work_or_last_is_refused(case):
    with pytest.raises(BackendError) as caught:
        require_admissible(text(**REFUSED[case]))
    assert caught.value.stage == "build"
    assert "is not for a kernel" in caught.value.reason or "no Python" in caught.value.reason
