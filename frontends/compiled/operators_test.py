"""Python's operators on tensors and their in-place forms, from module to kernel."""

import pytest
import torch

from frontends.compiled.module import compile_module
from frontends.pytorch.module import imported
from ir.parse.parse import parse_spec
from ir.print import spec_text
from testing.slow import in_turn

A = torch.randint(-8, 8, (3, 5), generator=torch.Generator().manual_seed(1))
B = torch.randint(-8, 8, (3, 5), generator=torch.Generator().manual_seed(2))


def bits(a, b):
    return a & b, a | b, a ^ b, ~a, a << (b % 5), a >> (b % 5)


def bits_with_numbers(a, b):
    return a & 12, 12 & a, a | 3, 3 | b, a ^ 5, 5 ^ b, a << 2, 1 << (a % 5), a >> 1, 1024 >> (b % 5)


def arithmetic(a, b):
    return a // (b + 9), a % (b + 9), a**2, -a, a / (b + 9), 5 - a, 100 // (b + 9), 100 % (b + 9)


def comparisons(a, b):
    return (a < b) & (a != 3) | (a >= b), (a > 2) ^ (b <= 1), ~(a == b), a.bool() & b.bool()


def in_place(a, b):
    c = a.clone()
    c &= 63
    c |= b
    c ^= 3
    c <<= 1
    c >>= 2
    c += b
    c -= 4
    c *= 3
    c //= 2
    c %= 7
    return c, c.add_(b).clamp_(-5, 5).bitwise_and_(7).bitwise_or_(1).neg_(), c.relu_().square_()


def floats_in_place(a, b):
    c = a * 0.5
    c /= 3.0
    c **= 2
    return c, c.mul_(2.0).sub_(b).clamp_(min=0.0).exp_(), c.fill_(1.0)


FORMS = (bits, bits_with_numbers, arithmetic, comparisons, in_place, floats_in_place)


@pytest.mark.parametrize(("function", "target"), in_turn(FORMS, ["npu", "mi300"]))
def test_operators_compile_and_are_right(function, target, tmp_path):
    run = compile_module(function, (A, B), target=target, folder=tmp_path)
    torch.testing.assert_close(run(A.clone(), B.clone()), function(A.clone(), B.clone()))


@pytest.mark.parametrize("function", FORMS)
def test_a_spec_of_operators_has_a_text_that_reads(function):
    spec = imported(function, (A, B)).spec
    assert parse_spec(spec_text(spec)) == spec


@pytest.mark.parametrize("target", ["npu", "mi300"])
def test_arguments_may_have_any_name(target, tmp_path):
    def named(lambda_, int, double, tl, args, launch):
        return (lambda_ + int) * double - tl / (args * args + 1.0) + launch

    given = [torch.randn(3, 5, generator=torch.Generator().manual_seed(n)) for n in range(6)]
    run = compile_module(named, given, target=target, folder=tmp_path)
    torch.testing.assert_close(run(*given), named(*given))
