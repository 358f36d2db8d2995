"""Names, numbers and sizes as Python; sizes mean what they meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.backend import BackendError
from backends.triton.emit import spelling
from ir.parse.expression import RESERVED
from ir.samples.samples import lowered, spec_of
from ir.spec import Apply, Index, Number, Size

M, N = Size("M"), Size("N")
_BINARY = ("add", "sub", "mul", "floordiv", "mod", "minimum", "maximum")
EXPRESSIONS = st.recursive(
    st.sampled_from([M, N, Index("m"), Number(3), Number(-2), Number(1)]),
    lambda inner: st.builds(Apply, st.sampled_from(_BINARY), st.tuples(inner, inner)),
    max_leaves=8,
)
KNOWN = {"M": 13, "N": 7, "m_at": 5}


def meaning(expr):
    """The value of a size expression, by Python's own arithmetic."""
    match expr:
        case Number(value):
            return value
        case Size(name):
            return KNOWN[name]
        case Index(name):
            return KNOWN[f"{name}_at"]
        case Apply(function, (a, b)):
            a, b = meaning(a), meaning(b)
            calls = dict(
                add=int.__add__,
                sub=int.__sub__,
                mul=int.__mul__,
                minimum=min,
                maximum=max,
                floordiv=int.__floordiv__,
                mod=int.__mod__,
            )
            return calls[function](a, b)
    raise AssertionError(expr)


@given(EXPRESSIONS)
def test_a_size_means_what_it_meant(expr):
    try:
        expected = meaning(expr)
    except ZeroDivisionError:
        return
    assert eval(spelling.size(expr), dict(KNOWN, min=min, max=max)) == expected


@given(EXPRESSIONS)
def test_so_does_one_that_something_is_multiplied_by(expr):
    try:
        expected = meaning(expr)
    except ZeroDivisionError:
        return
    known = dict(KNOWN, min=min, max=max)
    assert eval(f"2 * {spelling.factor(expr)}", known) == 2 * expected
    assert eval(f"{spelling.factor(expr)} * 2", known) == 2 * expected


def test_a_size_of_another_sort_has_no_spelling():
    with pytest.raises(BackendError, match="no spelling") as seen:
        spelling.size(Apply("exp", (M,)))
    assert seen.value.stage == "emit"


def named(name):
    """What a tensor of a name is called in a source."""
    spec = spec_of(
        f"{name}[m] = 2.0 * x[m]", f"y[m] = {name}[m] + 1.0", inputs="x: f32[M]", result="f32[M]"
    )
    made = spelling.spelled(lowered(spec, f"kernel({name})", sizes={"M": 9}))
    return made.launches[0].parameters[-1].name


@pytest.mark.parametrize(
    "name",
    [
        "tl",
        "float",
        "len",
        "m_at",
        "x_ptr",
        "offs_m",
        "in_m",
        "launch",
        "triton",
        *(h for h in spelling.HELPERS if h not in RESERVED),
    ],
)
def test_a_tensor_never_hides_a_name_of_the_file(name):
    assert named(name) in (f"{name}_", f"x_{name}")


@pytest.mark.parametrize("name", ["acc", "inner", "input", "acc_step"])
def test_other_tensors_keep_their_names(name):
    assert named(name) == name


def test_constants_are_python():
    assert spelling.number(2) == "2"
    assert spelling.number(True) == "True"
    assert spelling.number(1e-06) == "1e-06"
    assert eval(spelling.number(float("inf"))) == float("inf")
    assert eval(spelling.number(-float("inf"))) == -float("inf")


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        ("i32", -(2**31), 2**31 - 1),
        ("i64", -(2**63), 2**63 - 1),
        ("b8", True, True),
        ("f32", -float("inf"), float("inf")),
    ],
)
def test_an_infinite_constant_is_the_end_of_its_dtype(dtype, least, most):
    assert spelling.typed(-float("inf"), dtype) == least
    assert spelling.typed(float("inf"), dtype) == most


def test_a_constant_has_the_type_of_its_dtype():
    assert isinstance(spelling.typed(1, "f16"), float)
    assert isinstance(spelling.typed(1.0, "i32"), int)


def test_a_sum_leaves_zeros_out_and_subtracts():
    assert spelling.total(["0", "a", "-1"]) == "a - 1"
    assert spelling.total(["0"]) == "0"
    assert spelling.total([]) == "0"


def test_a_bound_that_moves_is_settled_where_it_ends_at_the_latest():
    moving = Apply("add", (Index("m"), Number(16)))
    assert spelling.settled(Apply("minimum", (N, moving))) == N
    assert spelling.settled(Apply("minimum", (moving, N))) == N
    assert spelling.settled(moving) == moving
    assert spelling.moves(moving) and not spelling.moves(N)
