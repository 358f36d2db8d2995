"""Quotients and remainders of sums of indices simplify to sums of indices where they can."""

from hypothesis import given
from hypothesis import strategies as st

from ir.partition.mixed_radix import is_sum, simplified, splits
from ir.spec import Apply, Expr, Index, Number

I, J, K = Index("i"), Index("j"), Index("k")
EXTENTS = {"i": 3, "j": 4, "k": 10}


def value(expr: Expr, at) -> int:
    match expr:
        case Index(name):
            return at[name]
        case Number(number):
            return int(number)
        case Apply(function, (a, b)):
            one, other = value(a, at), value(b, at)
            return {
                "add": one + other,
                "sub": one - other,
                "mul": one * other,
                "floordiv": one // other if other else 0,
                "mod": one % other if other else 0,
            }[function]
    raise AssertionError(expr)


def positions(children):
    by = st.integers(1, 13).map(Number)
    return st.one_of(
        st.builds(lambda a, b: a + b, children, children),
        st.builds(lambda a, b: a - b, children, children),
        st.builds(lambda a, n: Apply("mul", (a, n)), children, by),
        st.builds(lambda a, n: Apply("floordiv", (a, n)), children, by),
        st.builds(lambda a, n: Apply("mod", (a, n)), children, by),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from([I, J, K]), st.integers(0, 20).map(Number)), positions, max_leaves=8
)


@given(EXPRESSIONS, st.integers(0, 2), st.integers(0, 3), st.integers(0, 9))
def test_a_simplified_position_is_the_same_position(expr, i, j, k):
    at = {"i": i, "j": j, "k": k}
    assert value(simplified(expr, EXTENTS), at) == value(expr, at)


def test_digits_of_a_flat_position_are_its_indices():
    flat = (I * 4 + J) * 10 + K
    digits = (flat // 40, flat // 10 % 4, flat % 10)
    assert tuple(simplified(d, EXTENTS) for d in digits) == (I, J, K)


def test_a_digit_that_cuts_an_index_says_where():
    flat = (I * 4 + J) * 10 + K
    assert list(splits(flat // 20, EXTENTS)) == [("j", 2)]
    assert list(splits(K // 5, EXTENTS)) == [("k", 5)]
    assert list(splits(flat // 10 % 4, EXTENTS)) == []
    assert list(splits(flat // 30, EXTENTS)) == []  # 4 values of j are no groups of 3
    assert not is_sum(simplified(K // 5, EXTENTS))
