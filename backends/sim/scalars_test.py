"""Scalar work on the control core: counted in loops, and charged beyond what commands hide."""

import numpy as np
import pytest

from backends.backend import BackendError
from backends.sim.native.kernel_fixture import run
from backends.sim.native.load import load
from backends.sim.scalars import charged

FREE = 64  # `kFreeScalars` of native/element.h
LOOP = """KERNEL(k) {
  Index sum = 0;
  for (Index i = 0; i < args.size(0); i += 1) {
    sum = sum * 3 + i;
  }
  auto a = pe.buffer("a", Dtype::i32, {{M, 4}}, 1);
  co_await pe.fill(a.tile(), sum % 7, {{M, 4}});
  if (pe.id() == 0) co_await pe.store(args.tensor(0), {{0, M, 4}}, a.tile());
}
"""


def cycles(source, rounds, **options):
    return run(source, {"y": np.zeros(4, np.int32)}, [rounds], **options)["cycles"]


def test_each_loop_tells_its_operators():
    assert "i += 1) { pe.scalars(5);\n" in charged(LOOP)  # < += * + and the jump
    nested = "for (;;) { x = 1 + 2; while (a) { b *= 2; } // for (\n }"
    assert charged(nested) == (
        "for (;;) { pe.scalars(2); x = 1 + 2; while (a) { pe.scalars(2); b *= 2; } // for (\n }"
    )


def test_a_statement_as_a_body_becomes_a_block():
    assert charged("while (2 * a <= b) a *= 2;\nc = 1;") == (
        "while (2 * a <= b) { pe.scalars(4); a *= 2; }\nc = 1;"
    )
    assert charged("for (;;) { while (a) b -= 1; }") == (
        "for (;;) { pe.scalars(1); while (a) { pe.scalars(2); b -= 1; } }"
    )


def test_lines_stay_where_they_are():
    assert charged(LOOP).count("\n") == LOOP.count("\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "\nfor (;;) if (a) b = 1;",
            "line 2: `if` is not for a kernel: write the body of a loop as",
        ),
        ("while (a) while (b) a = 1;", "`while` is not for a kernel: write the body of a loop as"),
        ("while (a);", "`;` is not for a kernel: write the body of a loop as a block"),
        ("while (a) b = 1 }", "write the body of a loop as a block"),
        ("do { a = 1; } while (a);", "line 1: `do` is not for a kernel: loops are `for` and"),
        ("while (a) {", "it is not closed"),
        ("for", "a loop has `(` here"),
    ],
)
def test_a_loop_that_cannot_be_counted_is_refused(text, words):
    with pytest.raises(BackendError) as caught:
        charged(text)
    assert words in caught.value.reason


def test_what_is_computed_between_commands_takes_time():
    source = charged(LOOP)
    few = cycles(source, FREE // 5)
    assert few == cycles(LOOP, FREE // 5)
    assert cycles(source, 1000) - few == 5 * 1000 - FREE
    assert cycles(LOOP, 1000) == few  # nothing is charged for the original


def test_a_loop_without_end_is_refused_by_its_cycles():
    source = charged(LOOP.replace("i < args.size(0)", "i >= 0"))
    with pytest.raises(load().SimulationError, match="scalar operations without a command"):
        cycles(source, 1, max_cycles=100_000)
