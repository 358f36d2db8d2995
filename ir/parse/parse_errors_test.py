"""Every message of the parsers: its text, and where its caret points."""

import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_schedule, parse_spec, parse_workload

HEAD = 'def t(x: f32[M, K], eps=1e-06) -> f32[M, K]:\n    """Doc."""\n'


def line(text: str) -> str:
    """A spec whose only equation line is `text`."""
    return f"{HEAD}    {text}\n    return y\n"


def value(text: str) -> str:
    """A spec whose only equation has the right side `text`."""
    return line(f"y[m, k] = {text}")


def signature(text: str, result: str = "f32[M, K]") -> str:
    """A spec with another signature."""
    return f'def t({text}) -> {result}:\n    """Doc."""\n    y[m, k] = x[m, k]\n    return y\n'


GOOD = value("x[m, k] + eps")

# text, what the message says, what the caret underlines
SPECS = [
    ("def t(:", "this does not read: invalid syntax", ":"),
    (GOOD + "\ud800", "this text cannot be read", None),
    ("#" * 200_001, "the text has 200001 characters", None),
    ("", "a spec is one `def`", None),
    ("x = 1\n", "a spec is one `def`", "x = 1"),
    ("@cache\n" + GOOD, "a spec has no decorators", "cache"),
    (
        GOOD.replace("def t", "def T"),
        "`T` cannot name a kernel",
        "def T(x: f32[M, K], eps=1e-06) -> f32[M, K]:",
    ),
    (GOOD + "tune(M=1, K=1)\n", "a spec ends with its `return`", "tune(M=1, K=1)"),
    (line("range(x, 4.0, -4)"), "`range(x, 4.0, -4)` is empty", "range(x, 4.0, -4)"),
    (line("range(x, 0, inf)"), "`inf` is no end of a range of floats", "inf"),
    (line("range(x, 0, M)"), "`M` is no number", "M"),
    (line("range(m, 0, 4)"), "`m` is no input with numbers", "m"),
    (line("range(0, 4)"), "`range(0, 4)` declares no range", "range(0, 4)"),
    (
        signature("x: i32[M, K]", "i32[M, K]").replace("    y[m", "    range(x, 4, 4)\n    y[m"),
        "`range(x, 4, 4)` is empty",
        "range(x, 4, 4)",
    ),
    (HEAD + "    return y\n    y[m] = 1\n", "nothing comes after `return`", "y[m] = 1"),
    (signature("x: f32[M, K], *, a=1"), "the signature has no `*` and no `/`", "a"),
    (signature("*x"), "the signature has no `*` and no `/`", "x"),
    (signature("x: f32[M, K], x: f32[M]"), "`x` is declared twice", "x: f32[M]"),
    (signature("x: f32[M] = 1"), "a tensor has no default", "1"),
    (signature("x: f32[M, K], P=eps"), "`eps` is no size expression", "eps"),
    (signature("x: f32[M / 2, K]"), "`M / 2` is no size expression", "M / 2"),
    (signature("x: f32[0, K]"), "a size is at least 1, not 0", "0"),
    (signature("x: f32[m, K]"), "`m` is no size expression", "m"),
    (signature("x: f32[M, K], eps=True"), "an attribute is a number, not True", "True"),
    (signature("x: f32[M, K], eps=1 + 1"), "`1 + 1` is no number", "1 + 1"),
    (signature("x"), "`x` needs a type", "x"),
    (signature("x: f32"), "`x` needs a type", "f32"),
    (signature("x: fp32[M, K]"), "`x` has the unknown dtype `fp32`", "fp32"),
    (signature("X: f32[M, K]"), "`X` cannot name a tensor", "X: f32[M, K]"),
    (signature("exp: f32[M, K]"), "`exp` is a word of the language", "exp: f32[M, K]"),
    (
        signature("x: f32[M, K]", "(f32[M, K], f32[M])"),
        "1 tensors are returned, the signature has 2 types",
        "(f32[M, K], f32[M])",
    ),
    ("def t(x: f32[M]):\n    return x\n", "a spec starts with a docstring", "return x"),
    (HEAD, "a spec ends with the tensors it returns", '"""Doc."""'),
    (
        GOOD.replace("return y", "return y[m, k]"),
        "a spec ends with the tensors it returns",
        "return y[m, k]",
    ),
    (line("y[m, k]: [M] = x[m, k]"), "`[M]` are no sizes for 2 indices", "[M]"),
    (line("y[m, k]: [M, J] = x[m, k]"), "there is no size `J`", "J"),
    (line("y[m, k]: [M, 3] = x[m, k]"), "the index `k` has two ranges", "k"),
    (line("y = 1"), "`y = 1` is no equation", "y = 1"),
    (line("y[m, k] -= 1.0"), "`y[m, k] -= 1.0` is no equation", "y[m, k] -= 1.0"),
    (line("for m in M: pass"), "`for m in M: pass` is no equation", "for m in M: pass"),
    (line("y[m, k + 1] = x[m, k]"), "`k + 1` stands on the left side", "k + 1"),
    (value("+".join(["eps"] * 102)), "this is nested more than 100 deep", "eps+eps"),
    (
        value("x[m, k] and x[m, k]"),
        "`x[m, k] and x[m, k]` is not part of the language",
        "x[m, k] and x[m, k]",
    ),
    (value("not x[m, k]"), "is not part of the language", "not x[m, k]"),
    (value("x[m, k] if 1 else 2"), "is not part of the language", "x[m, k] if 1 else 2"),
    (value("x[m, k] @ x[m, k]"), "is not part of the language", "x[m, k] @ x[m, k]"),
    (value("x.T[m, k]"), "`x.T` is no tensor", "x.T"),
    (value("x[m, 1:2]"), "`1:2` is not part of the language", "1:2"),
    (value("'one'"), "`'one'` is not part of the language", "'one'"),
    (value("0 < x[m, k] < 1"), "comparisons do not chain", "0 < x[m, k] < 1"),
    (value("x[m, k] * 99999999999999999999"), "this integer is too large", "99999999999999999999"),
    (value("x * 2"), "the tensor `x` stands here without positions", "x"),
    (value("x[m, Km]"), "`Km` cannot name an index", "Km"),
    (value("max[m, k]"), "`max` is a word of the language", "max"),
    (value("2.0 * sum(x[m, k], k)"), "`sum` must be the whole right side", "sum(x[m, k], k)"),
    (value("exp(max(x[m, k], 0.0))"), "`max` must be the whole right side", "max(x[m, k], 0.0)"),
    (value("exp(x=x[m, k])"), "`exp` takes no named arguments", "x=x[m, k]"),
    (value("np.exp(x[m, k])"), "`np.exp(x[m, k])` is not part of the language", "np.exp(x[m, k])"),
    (value("rsqr(x[m, k])"), "there is no function `rsqr`", "rsqr"),
    (value("exp(x[m, k], 2)"), "`exp` is given 2 arguments", "exp(x[m, k], 2)"),
    (value("pad(2.0, 0.0)"), "`pad` is given `2.0`", "2.0"),
    (value("pad(x[m, k], k)"), "`k` is no number", "k"),
    (value("bucketize(x[m, k], x[m, k])"), "`bucketize` is given the borders `x[m, k]`", "x[m, k]"),
    (value("sum(x[m, k])"), "`sum` needs a body and an index", "sum(x[m, k])"),
    (value("max(x[m, k], 0.0)"), "`max` is given `0.0` as an index", "0.0"),
    (value("sum(x[m, k], **i)"), "`i` is not part of the language", "i"),
    (value("sum(x[m, i], i=range(1, 2, 3))"), "`range` is given 3 arguments", "range(1, 2, 3)"),
    (
        value("sum(x[m, i], i=range(0, i + 1))"),
        "`sum` runs over `range(0, i + 1)`",
        "range(0, i + 1)",
    ),
    (
        value("sum(x[m, i], i=range(0, m / 2))"),
        "`sum` runs over `range(0, m / 2)`",
        "range(0, m / 2)",
    ),
    (
        value("max(x[m, i] * x[j, i], i=range(0, m), j=range(0, m))"),
        "`max` runs over `range(0, m)`",
        "range(0, m)",
    ),
    (value("sum(x[m, i], i=range(1, K))"), "`range(1, K)` is no range", "range(1, K)"),
    (value("cumsum(x[m, k])"), "`cumsum` is given 1 arguments", "cumsum(x[m, k])"),
    (value("cumsum(x[m, k], k, reverse=1)"), "`cumsum` is given `reverse=1`", "reverse=1"),
]
WORKLOADS = [
    ("tune(M=1, K=1)\ntune(M=1, K=1)\n", "`tune` is given twice", "tune(M=1, K=1)"),
    ("tuned(M=1, K=1)\n", "`tuned(M=1, K=1)` stands after the spec", "tuned(M=1, K=1)"),
    ("check(M=1.5, K=1)\n", "`M=1.5` gives no size", "M=1.5"),
    ("check(M=1, M=1)\n", "`M=1` gives no size", "M=1"),
    ("check(M=1)\n", "`t` needs a value for K", "check(M=1)"),
    ("check(M=0, K=1)\n", "size M=0 is not a positive integer", "check(M=0, K=1)"),
    ("check(M=1, K=1, N=1)\n", "`t` has no free size `N`", "check(M=1, K=1, N=1)"),
]
SCHEDULES = [
    ("", "a schedule starts with the name of its kernel", None),
    ("tile(m, size=1)\n", "a schedule starts with the name", "tile(m, size=1)"),
    ("schedule('t')\n", "a schedule starts with the name", "schedule('t')"),
    ("schedule(t)\nm = 1\n", "`m = 1` is no decision", "m = 1"),
    ("schedule(t)\na.b(m)\n", "`a.b(m)` is no decision", "a.b(m)"),
    ("schedule(t)\ntile(m, 128)\n", "`tile` is given 2 arguments without a name", "128"),
    ("schedule(t)\ntile()\n", "`tile` is given 0 arguments without a name", "tile()"),
    ("schedule(t)\ntile(128)\n", "`tile` is about `128`", "128"),
    ("schedule(t)\ntile(m, size=1, size=2)\n", "`size=2` is no argument of a decision", "size=2"),
    ("schedule(t)\ntile(m, **size)\n", "`**size` is no argument of a decision", "**size"),
    ("schedule(t)\ntile(m, size='128')\n", "`'128'` is no value", "'128'"),
    ("schedule(t)\ntile(m, size=1e999)\n", "`1e999` is no value", "1e999"),
    ("schedule(t)\ntile(m, size=True)\n", "`True` is no value", "True"),
    ("schedule(t)\ntile(m, size=64 * 2)\n", "`64 * 2` is no value", "64 * 2"),
]


def fault(parse, text: str) -> KernelError:
    with pytest.raises(KernelError) as caught:
        parse(text, "a.kir")
    return caught.value


def says(error: KernelError, what: str, caret: str | None) -> None:
    """The error says `what`, under a caret, with a way out, and names the file."""
    assert what in error.what
    assert error.where == "a.kir" and str(error).startswith("a.kir")
    assert error.hint, "a message says what to do"
    if caret is not None:
        assert error.place.text[error.place.column : error.place.end].startswith(caret)


@pytest.mark.parametrize(("text", "what", "caret"), SPECS, ids=lambda v: str(v)[:40])
def test_a_spec_that_does_not_read(text, what, caret):
    says(fault(parse_spec, text), what, caret)


@pytest.mark.parametrize(("lines", "what", "caret"), WORKLOADS, ids=lambda v: str(v)[:40])
def test_sizes_that_do_not_read(lines, what, caret):
    parse_workload(GOOD)
    says(fault(parse_workload, GOOD + "\n" + lines), what, caret)


@pytest.mark.parametrize(("text", "what", "caret"), SCHEDULES, ids=lambda v: str(v)[:40])
def test_a_schedule_that_does_not_read(text, what, caret):
    says(fault(parse_schedule, text), what, caret)


def test_a_near_miss_is_suggested():
    assert "did you mean `rsqrt`?" in str(fault(parse_spec, value("rsqr(x[m, k])")))
    assert "did you mean `f32`?" in str(fault(parse_spec, signature("x: fp32[M, K]")))
    assert "maximum(a, b)" in str(fault(parse_spec, value("max(x[m, k], 0.0)")))


def test_a_message_shows_file_line_caret_and_what_to_do():
    assert str(fault(parse_spec, value("exp(sum(x[m, k], k))"))) == (
        "a.kir, line 3: `sum` must be the whole right side of an equation\n"
        "        y[m, k] = exp(sum(x[m, k], k))\n"
        "                      ^^^^^^^^^^^^^^^\n"
        "  hint: give it its own equation"
    )
