"""Compiler errors are reported with the source line, the candidates and similar names."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.shared.diagnostics import MOST_ERRORS, MOST_LINES, first_errors

GCC = """In file included from k.cc:1:
k.cc: In function 'void kernel(int)':
k.cc:3:9: warning: unused variable
    3 |     int a;
      |         ^
k.cc:4:9: error: no matching function for call to 'send(int, int)'
    4 |     send(1, 2);
      |     ~~~~^~~~~~
In file included from k.cc:1:
/some/where/dev.h:2:6: note: candidate: 'void send(int, float, int)'
    2 | void send(int a, float b, int c);
      |      ^~~~
/some/where/dev.h:2:6: note:   candidate expects 3 arguments, 2 provided
k.cc:5:5: error: 'load_shard' was not declared in this scope; did you mean 'load_shared'?
    5 |     load_shard(a);
      |     ^~~~~~~~~~
      |     load_shared
"""
CLANG = """/build/k.hip:6:5: error: no matching function for call to 'send'
    6 |     send(1, 2);
      |     ^~~~
/build/k.hip:3:7: note: candidate function not viable: requires 3 arguments, but 2 were provided
    3 |  void send(int a, float b, int c);
      |       ^
1 error generated.
"""
NVRTC = """kernel.cu(6): error: no instance of overloaded function "send" matches the argument list
            argument types are: (int, int)
      send(1, 2);
      ^
kernel.cu(3): note #3322-D: number of parameters of function "send(float *, int, int)" does not match
  __device__ void send(float* p, int n, int m);
                  ^

kernel.cu(8): error: identifier "nothing" is undefined
      nothing(a);
      ^

2 errors detected in the compilation of "kernel.cu".
"""


def test_gcc():
    assert first_errors(GCC) == (
        "k.cc, line 4: no matching function for call to 'send(int, int)'\n"
        "      4 |     send(1, 2);\n"
        "        |     ~~~~^~~~~~\n"
        "  note, dev.h, line 2: candidate: 'void send(int, float, int)'\n"
        "      2 | void send(int a, float b, int c);\n"
        "        |      ^~~~\n"
        "  note, dev.h, line 2: candidate expects 3 arguments, 2 provided\n"
        "k.cc, line 5: 'load_shard' was not declared in this scope; did you mean 'load_shared'?\n"
        "      5 |     load_shard(a);\n"
        "        |     ^~~~~~~~~~\n"
        "        |     load_shared"
    )


def test_clang():
    said = first_errors(CLANG).split("\n")
    assert said[0] == "k.hip, line 6: no matching function for call to 'send'"
    assert said[3].startswith("  note, k.hip, line 3: candidate function not viable: requires 3")
    assert len(said) == 6


def test_nvrtc():
    said = first_errors(NVRTC)
    assert said.startswith('kernel.cu, line 6: no instance of overloaded function "send" matches')
    assert "argument types are: (int, int)" in said and "        send(1, 2);" in said
    assert '  note, kernel.cu, line 3: number of parameters of function "send(float *' in said
    assert 'kernel.cu, line 8: identifier "nothing" is undefined' in said
    assert "detected" not in said


@pytest.mark.parametrize(
    "line",
    [
        "g++: error: unrecognized command-line option '-fno'",
        "/usr/bin/ld: error: undefined symbol: f",
        "ptxas fatal   : Value 'sm_1' is not defined",
        "LLVM ERROR: Cannot select: t1",
    ],
)
def test_errors_without_a_place(line):
    assert first_errors(f"something\n{line}\nmore\n") == line


def test_only_the_first_errors_are_told_and_of_each_the_first_lines():
    note = "k.cc:1:1: note: candidate: f\n"
    text = "".join(f"k.cc:{n}:1: error: e{n}\n" for n in range(9)) + note * 99
    said = first_errors(text).split("\n")
    assert said[:MOST_ERRORS] == [f"k.cc, line {n}: e{n}" for n in range(MOST_ERRORS)]
    assert said[MOST_ERRORS:] == [f"({9 - MOST_ERRORS} more errors)"]
    said = first_errors("k.cc:1:1: error: e\n" + note * 99).split("\n")
    assert len(said) == MOST_LINES + 1 and said[-1] == f"  ({100 - MOST_LINES} more lines)"


def test_what_names_no_error_tells_nothing():
    assert first_errors("k.cc:1:1: warning: w\n   1 | x\nk.cc:1:1: note: n\n") == ""


@given(st.text(alphabet="k.c:(1)error note\n |^", max_size=200))
def test_any_output_is_told_within_bounds(text):
    assert len(first_errors(text).split("\n")) <= MOST_ERRORS * (MOST_LINES + 1) + 1


def test_what_this_machines_compiler_says(tmp_path):
    (tmp_path / "k.cc").write_text("void shift(int);\nvoid k() { shfit(1); }\n")
    done = subprocess.run(
        ["g++", "-fsyntax-only", "k.cc"], cwd=tmp_path, capture_output=True, text=True
    )
    said = first_errors(done.stderr)
    assert said.startswith("k.cc, line 2: ") and "shift" in said.split("\n")[0]
    assert "void k() { shfit(1); }" in said
