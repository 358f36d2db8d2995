"""The facts of a spec, and every message of its rules."""

import re

import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.print import expression_text, tensor_type
from ir.spec import Spec
from ir.verify import facts

INPUTS = {
    "x": "f32[M, K]",
    "w": "f32[K]",
    "a": "f16[M]",
    "c": "bf16[M]",
    "d": "f64[M]",
    "i": "i32[M]",
    "j": "i64[M]",
    "t": "b8[M]",
    "o": "i32[M + 1]",
    "v": "f32[L]",
}


def spec_of(lines: str, result: str, more: str = "") -> Spec:
    """A spec of lines separated by `;`, with the inputs that they name."""
    named = [f"{n}: {kind}" for n, kind in INPUTS.items() if re.search(rf"\b{n}[\[)]", lines)]
    arguments = ", ".join([*named, *([more] if more else [])])
    body = "".join(f"    {line.strip()}\n" for line in lines.split(";"))
    return parse_spec(f'def s({arguments}) -> {result}:\n    """Doc."""\n{body}    return y\n')


RESULTS = [
    ("a[m] * c[m]", "f32"),
    ("a[m] * 2.0", "f16"),
    ("c[m] + 1", "bf16"),
    ("c[m] + eps", "bf16"),
    ("a[m] * m", "f16"),
    ("f32(a[m]) * d[m]", "f64"),
    ("i[m] + 1", "i32"),
    ("i[m] * two", "i32"),
    ("i[m] + j[m]", "i64"),
    ("i[m] * 2.0", "f32"),
    ("i[m] * eps", "f32"),
    ("j[m] + a[m]", "f16"),
    ("i[m] / 2", "f32"),
    ("i[m] // 2", "i32"),
    ("exp(i[m])", "f32"),
    ("exp(c[m])", "bf16"),
    ("t[m] + t[m]", "i32"),
    ("t[m] & (m < 3)", "b8"),
    ("maximum(t[m], m > 1)", "b8"),
    ("where(t[m], a[m], 0.0)", "f16"),
    ("where(t[m], i[m], 0)", "i32"),
    ("a[m] < i[m]", "b8"),
    ("m + M", "i32"),
    ("1.0 / M", "f32"),
    ("bucketize(a[m], v)", "i32"),
    ("sum(x[m, k], k)", "f32"),
    ("sum(i[m] * k, k=3)", "i32"),
    ("sum(t[m] & (k < 2), k=3)", "i32"),
    ("max(a[m] * k, k=3)", "f16"),
    ("any(x[m, k] > 0.0, k)", "b8"),
    ("argmax(x[m, k], k)", "i32"),
    ("cumsum(t[m], m)", "i32"),
    ("cummax(j[m], m)", "i64"),
    ("True", "b8"),
    ("-inf", "f32"),
    ("7", "i32"),
]


@pytest.mark.parametrize(("value", "dtype"), RESULTS)
def test_dtypes_follow_from_the_operands(value, dtype):
    lines = f"z[m] = {value}; y[m] = where(z[m] == z[m], 1.0, 0.0)"
    spec = spec_of(lines, "f32[M]", "eps=0.5, two=2")
    assert facts(spec).tensors["z"].dtype == dtype


def test_attributes_of_equal_value_and_other_kind_do_not_share_facts():
    lines = "z[m] = i[m] * n; y[m] = f32(z[m])"
    whole, real = (spec_of(lines, "f32[M]", f"n={n}") for n in ("2", "2.0"))
    assert facts(whole).tensors["z"].dtype == "i32"
    assert facts(real).tensors["z"].dtype == "f32"


def ranges(spec: Spec) -> dict[str, str]:
    return {i: expression_text(r.high) for i, r in facts(spec).ranges.items()}


def test_ranges_come_from_plain_reads_the_signature_and_the_text():
    spec = spec_of("z[m] = sum(x[m, k] * q, k, q=3); y[m, b] = z[m] + b", "f32[M, 7]")
    assert ranges(spec) == {"m": "M", "k": "K", "q": "3", "b": "7"}
    assert facts(spec).sizes == ("M", "K")
    assert tensor_type(facts(spec).tensors["z"]) == "f32[M]"


def test_ranges_travel_through_intermediates_in_both_directions():
    lines = "z[p] = pad(w[p + 2], 0.0); u[q] = z[q]; y[p] = u[p]"
    spec = spec_of(lines, "f32[P]", "P=(K - 1) // 2 + 1")
    assert ranges(spec) == {"p": "P", "q": "P"}


def test_the_shape_of_a_scattered_intermediate_comes_from_its_reader():
    spec = spec_of("z[i[m]] += a[m]; y[k] = z[k] + w[k]", "f32[K]")
    assert tensor_type(facts(spec).tensors["z"]) == "f16[K]"


def test_a_jagged_index_has_the_range_that_is_written():
    spec = spec_of("y[b] = sum(v[l], l=range(o[b], o[b + 1]))", "f32[M]")
    found = facts(spec).ranges
    assert found["l"].jagged and expression_text(found["l"].low) == "o[b]"
    assert expression_text(found["b"].high) == "M"


ACCEPTED = {
    "a slice that the signature declares": ("y[p] = o[p + 1] - o[p]", "i32[M]", ""),
    "a valid convolution": ("y[p] = sum(w[p + s], s=3)", "f32[P]", "P=K - 2"),
    "an undecidable position": ("y[p] = w[2 * p]", "f32[P]", "P=(K - 1) // 2 + 1"),
    "a size of its own": ("y[b] = w[b + 3] + 0.0 * M", "f32[M]", ""),
    "a flattened read": ("y[b] = x[b // K, b % K]", "f32[M * K]", ""),
    "a longer padded read": ("y[b] = pad(w[b], 0.0)", "f32[K + 4]", ""),
    "an index only on the left": ("y[m, n] = a[m]", "f16[M, N]", ""),
    "no input": ("y[m] = m", "i32[M]", ""),
    "truth stored as an integer": ("y[m] = a[m] < 1.0", "i32[M]", ""),
    "half stored of a float": ("y[m] = d[m]", "bf16[M]", ""),
    "a single number": ("y[()] = sum(a[m], m)", "f16[()]", ""),
    "a transposed convolution": ("y[2 * k + m] += w[k] * a[m]", "f32[2 * K + M]", ""),
    "equal sizes written differently": ("y[m] = o[m]", "i32[1 + M]", ""),
    "a clamped gather": ("y[m] = w[minimum(i[m], K - 1)]", "f32[M]", ""),
    "a padded gather": ("y[m] = pad(w[i[m]], 0.0)", "f32[M]", ""),
}


@pytest.mark.parametrize(("lines", "result", "more"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines, result, more):
    facts(spec_of(lines, result, more))


# lines, result, more arguments, what the message says, what the caret underlines
REFUSED = [
    ("y[m] = a[m] * Q", "f16[M]", "", "there is no size `Q`", "Q"),
    ("y[p] = pad(w[p], 0.0)", "f32[P]", "P=Q + 1, Q=K", "the size `P` needs `Q`", "Q + 1"),
    ("y[p] = pad(w[p], 0.0)", "f32[P]", "P=P + 1", "the size `P` needs `P`", "P + 1"),
    (
        "eps[m] = a[m]; y[m] = a[m]",
        "f16[M]",
        "eps=1.0",
        "`eps` is an attribute and a tensor",
        "eps[m]",
    ),
    ("y[m] = a[m]; m[k] = w[k]", "f16[M]", "", "`m` is a tensor and an index", "m"),
    (
        "y[m] = sum(a[m], eps)",
        "f16[M]",
        "eps=1.0",
        "`eps` is an attribute and an index",
        "sum(a[m], eps)",
    ),
    ("y[m] = b[m]", "f32[M]", "", "there is no tensor `b`", "b[m]"),
    ("y[m] = z[m]; z[m] = a[m]", "f16[M]", "", "`z` is used before it is defined", "z[m]"),
    ("y[m] = y[m] + a[m]", "f16[M]", "", "`y` is used before it is defined", "y[m]"),
    ("y[m] = a[m]; y[m] = c[m]", "f32[M]", "", "`y` is defined twice", "y[m]"),
    ("a[m] = c[m]; y[m] = a[m]", "f32[M]", "", "`a` is defined twice", "a[m]"),
    ("z[m] = a[m]", "f16[M]", "", "`y` is returned, but no equation defines it", "y"),
    ("y[m] = a[m]", "f16[M, K]", "", "`y` has 1 indices, its type in the signature has 2", "y[m]"),
    ("y[m] = x[m]", "f32[M]", "", "`x` has 2 dimensions and is given 1 positions", "x[m]"),
    (
        "y[m] = bucketize(a[m], x) + 0.0 * x[m, 0]",
        "f32[M]",
        "",
        "`x` has 2 dimensions and is given 1",
        "bucketize(a[m], x)",
    ),
    ("y[m] = a[m]", "f16[M]", "b: f32[M]", "the input `b` is never read", "b: f32[M]"),
    ("y[m] = a[m]; z[m] = a[m]", "f16[M]", "", "`z` is never read and not returned", "z[m]"),
    ("y[m, m] = a[m]", "f16[M, M]", "", "the left side has the index `m` twice", "m"),
    ("y[m] = x[m, k]", "f32[M]", "", "the index `k` is on the right side but not on the left", "k"),
    ("y[m] = sum(x[m, k], k, k)", "f32[M]", "", "`sum` reduces `k` twice", "sum(x[m, k], k, k)"),
    (
        "y[m, k] = sum(x[m, k], k)",
        "f32[M, K]",
        "",
        "`sum` reduces `k`, which the left side has too",
        "sum(",
    ),
    (
        "y[m] = sum(a[m], k=3)",
        "f16[M]",
        "",
        "`sum` reduces `k`, which its body does not have",
        "sum(",
    ),
    (
        "y[m] = cumsum(x[m, k], k)",
        "f32[M]",
        "",
        "`k`, which its left side does not have",
        "cumsum(",
    ),
    ("y[m, k] = cumsum(a[m], k)", "f16[M, K]", "", "`k`, which its body does not have", "cumsum("),
    (
        "y[b] = sum(v[l] * v[n], l=range(o[b], o[b + 1]), n=range(o[b], o[b + 1]))",
        "f32[M]",
        "",
        "2 jagged ranges",
        "sum(",
    ),
    ("y[b] = argmax(v[l], l=range(o[b], o[b + 1]))", "i32[M]", "", "1 jagged ranges", "argmax("),
    ("y[b] = sum(v[l], l=range(o[l], o[b]))", "f32[M]", "", "has the bound `o[l]`", "range("),
    (
        "y[b] = sum(v[l], l=range(x[b, 0], x[b, 1]))",
        "f32[M]",
        "",
        "has the bound `x[b, 0]`",
        "range(",
    ),
    ("y[b] = sum(v[l], l=range(a[b], a[b]))", "f32[M]", "", "a position has the dtype f16", "a[b]"),
    (
        "y[b] = sum(v[l], l=range(o[b], o[b + 2]))",
        "f32[M]",
        "",
        "the position `b + 2` leaves `o`",
        "b + 2",
    ),
    ("y[m] = a[m] + w[m]", "f32[M]", "", "the index `m` has two ranges: M, and K of `w`", "m"),
    (
        "z[m] = a[m] + w[m]; y[b] = sum(z[m] * b, m)",
        "f32[3]",
        "",
        "two ranges: M, and K of `w`",
        "m",
    ),
    (
        "y[m] = x[m, k]; z[n] = sum(w[k], k)",
        "f32[M]",
        "",
        "the index `k` is on the right side",
        "k",
    ),
    ("y[k] = w[k]", "f32[K + 1]", "", "two ranges: K + 1, and K of `w`", "k"),
    (
        "z[m] = sum(a[m] * s, s=3); y[m] = sum(z[m] * s, s=4)",
        "f16[M]",
        "",
        "`s` has two ranges",
        "s=4",
    ),
    (
        "z[m] = sum(a[m] * s, s=3); y[s] = sum(z[m] * s, m)",
        "f16[M]",
        "",
        "the range written with it, and M",
        "s",
    ),
    (
        "z[b] = sum(v[l], l=range(o[b], o[b + 1])); y[l] = sum(v[l] * z[b], b)",
        "f32[L]",
        "",
        "`l` has two ranges",
        "l",
    ),
    (
        "z[b] = sum(v[l], l=range(o[b], o[b + 1])); u[l] = v[l]; y[b] = z[b] + u[b]",
        "f32[M]",
        "",
        "`l` has two ranges: jagged",
        "l",
    ),
    (
        "z[s] = 1.0 * s; y[m] = a[m] + z[i[m]]",
        "f32[M]",
        "",
        "nothing gives the index `s` a range",
        "s",
    ),
    (
        "z[i[m]] += a[m]; y[m] = pad(z[i[m]], 0.0)",
        "f16[M]",
        "",
        "nothing gives dimension 0 of `z` a size",
        "z[i[m]]",
    ),
    ("z[m] = a[m]; y[k] = w[k] + z[k]", "f32[K]", "", "`k` has two ranges: K, and M of `z`", "k"),
    (
        "y[m] = a[m] + a[m + 1]",
        "f16[M]",
        "",
        "the position `m + 1` leaves `a`, whose size there is M",
        "m + 1",
    ),
    ("y[m] = a[m] + a[m - 1]", "f16[M]", "", "the position `m - 1` leaves `a`", "m - 1"),
    ("y[m] = a[2 * m]", "f16[M]", "", "the position `2 * m` leaves `a`", "2 * m"),
    ("y[m] = a[m] + a[-m]", "f16[M]", "", "the position `-m` leaves `a`", "-m"),
    ("y[p] = sum(w[p + s], s=4)", "f32[P]", "P=K - 2", "the position `p + s` leaves `w`", "p + s"),
    ("y[m + 1] += a[m]", "f16[M]", "", "the position `m + 1` leaves `y`", "m + 1"),
    ("y[m] = w[a[m]]", "f32[M]", "", "a position has the dtype f16", "a[m]"),
    ("y[m] = w[t[m]]", "f32[M]", "", "a position has the dtype b8", "t[m]"),
    ("y[a[m]] += a[m]", "f16[K]", "", "a position has the dtype f16", "a[m]"),
    (
        "y[m] = pad(i[m - 1], 0.5)",
        "i32[M]",
        "",
        "`i` holds i32 and is padded with 0.5",
        "pad(i[m - 1], 0.5)",
    ),
    ("y[m] = pad(i[m - 1], -inf)", "i32[M]", "", "`i` holds i32 and is padded with -inf", "pad("),
    ("y[m] = bucketize(a[m], i)", "i32[M]", "", "searches for f16 in `i`, which holds i32", "buck"),
    (
        "y[m] = where(a[m], 1.0, 0.0)",
        "f32[M]",
        "",
        "`where` is given f16 where it needs a truth",
        "a[m]",
    ),
    (
        "y[m] = where(t[m] & i[m], 1.0, 0.0)",
        "f32[M]",
        "",
        "`&` is given i32 where it needs a truth",
        "i[m]",
    ),
    ("y[m] = f32(~a[m])", "f32[M]", "", "`~` is given f16 where it needs a truth value", "a[m]"),
    (
        "y[m] = any(x[m, k], k)",
        "b8[M]",
        "",
        "`any` is given f32 where it needs a truth value",
        "x[m, k]",
    ),
    ("y[m] = a[m]", "i32[M]", "", "`y` is f16, the signature returns i32", "y[m]"),
    ("y[m] = i[m]", "f32[M]", "", "`y` is i32, the signature returns f32", "y[m]"),
    ("y[m] = t[m]", "f32[M]", "", "`y` is b8, the signature returns f32", "y[m]"),
    ("y[m] = i[m]", "b8[M]", "", "`y` is i32, the signature returns b8", "y[m]"),
]


@pytest.mark.parametrize(
    ("lines", "result", "more", "what", "caret"), REFUSED, ids=lambda v: v[:40]
)
def test_refuses(lines, result, more, what, caret):
    with pytest.raises(KernelError) as caught:
        spec_of(lines, result, more)
    error = caught.value
    assert what in error.what
    assert error.hint and error.place
    assert error.place.text[error.place.column : error.place.end].startswith(caret)


def test_a_tensor_returned_twice_is_refused():
    text = (
        'def s(a: f32[M]) -> (f32[M], f32[M]):\n    """Doc."""\n    y[m] = a[m]\n    return y, y\n'
    )
    with pytest.raises(KernelError, match="`y` is returned twice"):
        parse_spec(text)


def test_facts_are_worked_out_once():
    spec = spec_of("y[m] = a[m]", "f16[M]")
    assert facts(spec) is facts(spec_of("y[m] = a[m]", "f16[M]"))
