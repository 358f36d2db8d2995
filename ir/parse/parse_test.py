"""Texts parse to specs and print back; a broken text gives a helpful error and no other
exception."""

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.parse.parse import parse_schedule, parse_spec, parse_workload
from ir.print import expression_text, spec_text, workload_text
from ir.spec import Number
from ir.verify import facts
from testing.samples.random_specs import specs

LIBRARY = sorted((pathlib.Path(__file__).parents[1] / "library").glob("*.kir"))
TEXTS = [path.read_text() for path in LIBRARY]
SCHEDULE = """schedule(rmsnorm_matmul)
tile(m, size=128)
place(m.outer, level=grid)
fuse(ss, into=acc)
load(x, at=k.outer)
pipeline(x, stages=3)
compute(acc, unit=matrix, acc=f32)
scale(y, by=-0.5)
"""
TOKENS = r"""def return ( ) [ ] , : = += -> f32 b8 x y m k M K sum max cumsum pad range
    bucketize where exp inf 0 1 -1 1e999 0.5 + - * / // % ** ~ & | < == not and if else
    lambda for in yield await :
    := ... ** * @ . ; \ ' " # é 99999999999999999999 1j None True tune check schedule
    import class x[m] x[()] (((((((( ]]]] reverse=True i=3 l=range(a[b],a[b+1])""".split()
TOKENS += ["\n", "\t", "\0", "\ud800", '"""', "\n    "]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: p.stem)
def test_library_texts_are_canonical(path):
    workload = parse_workload(path.read_text(), path.name)
    assert workload_text(workload) == path.read_text()
    assert workload.spec.name == path.stem
    assert workload.tune and 3 <= len(workload.checks) <= 5


@given(specs())
def test_what_prints_parses_to_the_same_spec(spec):
    assert parse_spec(spec_text(spec)) == spec


def test_a_schedule_prints_as_it_was_written():
    schedule = parse_schedule(SCHEDULE)
    assert str(schedule) == SCHEDULE
    assert parse_schedule(str(schedule)) == schedule
    assert schedule.find("load", "x").option("at") == "k.outer"
    assert schedule.decisions[0].place.line == 2


@st.composite
def corrupted(draw, texts):
    """A text with a few characters or words deleted, inserted, swapped or repeated."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        a = draw(st.integers(0, len(text)))
        b = draw(st.integers(a, min(len(text), a + 8)))
        c = draw(st.integers(b, min(len(text), b + 8)))
        word = draw(st.one_of(st.sampled_from(TOKENS), st.text(max_size=3)))
        text = draw(
            st.sampled_from(
                [
                    text[:a] + text[b:],
                    text[:a] + word + text[a:],
                    text[:a] + word + text[b:],
                    text[:a] + text[b:c] + text[a:b] + text[c:],
                    text[:b] + text[a:b] + text[b:],
                ]
            )
        )
    return text


def _reads(parse, text):
    try:
        return parse(text)
    except KernelError as e:
        assert str(e) and (e.allowed or e.hint)
        return None


@given(corrupted(TEXTS))
def test_a_corrupted_workload_gives_only_kernel_errors(text):
    workload = _reads(parse_workload, text)
    if workload is not None:
        assert parse_workload(workload_text(workload)) == workload


@given(corrupted([t.split("\ntune")[0] for t in TEXTS]))
def test_a_corrupted_spec_gives_only_kernel_errors(text):
    spec = _reads(parse_spec, text)
    if spec is not None:
        assert parse_spec(spec_text(spec)) == spec


@given(corrupted([SCHEDULE]))
def test_a_corrupted_schedule_gives_only_kernel_errors(text):
    schedule = _reads(parse_schedule, text)
    if schedule is not None:
        assert parse_schedule(str(schedule)) == schedule


@given(st.text())
def test_any_text_gives_only_kernel_errors(text):
    for parse in (parse_spec, parse_workload, parse_schedule):
        _reads(parse, text)


def body(equation: str, signature: str = "x: f32[M, K]", result: str = "f32[M, K]") -> str:
    return f'def t({signature}) -> {result}:\n    """Doc."""\n    {equation}\n    return y\n'


DEEP = "(" * 150 + "x[m, k]" + ")" * 150
HOSTILE = {
    "null byte": body("y[m, k] = x[m, k]") + "\0",
    "surrogate": body("y[m, k] = x[m, k]") + "\ud800",
    "brackets": body(f"y[m, k] = {DEEP}") * 2,
    "very deep brackets": "(" * 100_000,
    "many signs": body("y[m, k] = " + "-" * 50_000 + "x[m, k]"),
    "long sum": body("y[m, k] = " + " + ".join(["x[m, k]"] * 5000)),
    "long integer": body("y[m, k] = x[m, k] + " + "9" * 10_000),
    "nested calls": body("y[m, k] = " + "exp(" * 150 + "x[m, k]" + ")" * 150),
    "too long": "# " + "x" * 300_000,
    "long dotted name": "schedule(" + ".".join("a" * 5000) + ")",
    "attributes": "schedule(a)\n" + "a" + ".b" * 20_000 + "(c)",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_give_kernel_errors(text):
    for parse in (parse_spec, parse_workload, parse_schedule):
        with pytest.raises(KernelError):
            parse(text)


def test_a_text_may_use_tabs_and_lack_its_last_newline():
    text = body("y[m, k] = x[m, k]").replace("    ", "\t").rstrip()
    assert spec_text(parse_spec(text)) == spec_text(parse_spec(body("y[m, k] = x[m, k]")))


def test_the_caret_counts_characters_not_bytes_and_a_tab_as_one():
    text = body('y[m, k] = x[m, z] # "é"').replace("Doc", "Dóc").replace("    y", "\ty")
    with pytest.raises(KernelError) as caught:
        parse_spec(text.replace('    """', '\t"""').replace("    return", "\treturn"))
    place = caught.value.place
    assert place.text[place.column : place.end] == "z"
    assert "\t" not in str(caught.value)


def test_negative_numbers_are_numbers():
    spec = parse_spec(body("y[m, k] = x[m, k] * -2.0 + -inf"))
    assert Number(-2.0) in spec.equations[0].value.walk()
    assert "x[m, k] * -2.0 + -inf" in spec_text(spec)


def test_equal_numbers_of_different_kinds_are_different():
    assert Number(1) != Number(1.0) != Number(True)
    one, decimal = (
        parse_spec(body(f"y[m, k] = i[m, k] * {n}", "i: i32[M, K]", dtype + "[M, K]"))
        for n, dtype in (("1", "i32"), ("1.0", "f32"))
    )
    assert one != decimal


ROUND = {
    "y[m, k] = (x[m, k] + 1.0) * 2.0 - (3.0 - x[m, k])": None,
    "y[m, k] = x[m, k] ** 2 ** x[m, k]": None,
    "y[m, k] = (x[m, k] ** 2) ** 3": None,
    "y[m, k] = (-x[m, k]) ** 2 + -x[m, k] ** 2": None,
    "y[m, k] = (-2.0) ** x[m, k]": None,
    "y[m, k] = x[m, k] ** -2": None,
    "y[m, k] = x[m, k] / (x[m, k] / 2.0) / 3.0": None,
    "y[m, k] = where((m >= k) & ~(x[m, k] > 0.0) | (m == 1), 1.0, 0.0)": None,
    "y[m, k] = where((m < k) == (k < 3), 1.0, -(x[m, k] * 2.0))": None,
    "y[m, k] = ((x[m, k]))": "y[m, k] = x[m, k]",
    "y[m, k] = sum(i * x[(m, k)], i=range(3))": "y[m, k] = sum(i * x[m, k], i=3)",
    "y[m, k] = cumsum(x[m, k], k, reverse=False)": "y[m, k] = cumsum(x[m, k], k)",
    "y[m, k] = cummax(x[m, k], k, exclusive=True, reverse=True)": (
        "y[m, k] = cummax(x[m, k], k, reverse=True, exclusive=True)"
    ),
    "y[m, k] = x[m, k] * 1e400": "y[m, k] = x[m, k] * inf",
    "y[m, k] = x[m, k] * True": None,
}


@pytest.mark.parametrize("written", ROUND)
def test_expressions_print_with_few_parentheses(written):
    written, expected = written, ROUND[written] or written
    assert expected in spec_text(parse_spec(body(written)))


def test_a_scalar_tensor_has_empty_positions():
    text = body("y[()] = sum(x[m, k], m, k)", result="f32[()]")
    assert "-> f32[()]:" in spec_text(parse_spec(text))
    assert parse_spec(text).outputs[0].shape == ()


def test_a_docstring_becomes_one_line_and_keeps_its_characters():
    doc = 'A "quoted"\n\n    back\\\\slash, \\x07 and é"'
    text = body("y[m, k] = x[m, k]").replace("Doc.", doc + "\\n").replace('"\\n', '\\"\\n')
    spec = parse_spec(text)
    assert spec.doc == 'A "quoted" back\\slash, \x07 and é"'
    assert parse_spec(spec_text(spec)) == spec


def test_sizes_written_on_a_left_side_give_indices_their_ranges():
    text = (
        "def up(\n    x: f32[M, K],\n) -> f32[M, K]:\n"
        '    """Spread out, then moved."""\n'
        "    t[m, p]: [M, 2 * K] = where(p % 2 == 0, pad(x[m, p // 2], 0.0), 0.0)\n"
        "    y[m, k] = t[m, k + 1]\n    return y\n"
    )
    spec = parse_spec(text)
    assert spec_text(spec) == text
    assert expression_text(facts(spec).ranges["p"].high) == "2 * K"
