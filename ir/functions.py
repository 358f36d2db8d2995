"""The table of pointwise functions: names, arities, spellings and kinds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A pointwise function."""

    name: str  # in `Apply`
    arity: int
    operator: str = ""  # its spelling between operands; empty if it is called
    # `vector`: one operation of an arithmetic unit; `special`: a table or a series.
    unit: str = "vector"
    # The operands and the result. `arithmetic`: the operands' dtype; `float`: a float; `compare`,
    # and `test` of a float: b8; `logic`: b8 of b8, or bits of integers; `bits`: integers only;
    # `random`: f32 of integers (`ir/reference/philox.py`).
    kind: str = "arithmetic"


_TABLE = (
    Function("add", 2, "+"),
    Function("sub", 2, "-"),
    Function("mul", 2, "*"),
    Function("div", 2, "/", kind="float"),
    Function("floordiv", 2, "//"),
    Function("mod", 2, "%"),
    Function("pow", 2, "**", unit="special"),
    Function("neg", 1, "-"),
    Function("lt", 2, "<", kind="compare"),
    Function("le", 2, "<=", kind="compare"),
    Function("gt", 2, ">", kind="compare"),
    Function("ge", 2, ">=", kind="compare"),
    Function("eq", 2, "==", kind="compare"),
    Function("ne", 2, "!=", kind="compare"),
    Function("and", 2, "&", kind="logic"),
    Function("or", 2, "|", kind="logic"),
    Function("xor", 2, "^", kind="logic"),
    Function("not", 1, "~", kind="logic"),
    Function("shl", 2, "<<", kind="bits"),
    Function("shr", 2, ">>", kind="bits"),
    Function("where", 3),
    Function("minimum", 2),
    Function("maximum", 2),
    Function("abs", 1),
    Function("floor", 1),
    Function("ceil", 1),
    Function("round", 1),
    Function("trunc", 1),
    Function("sign", 1),
    Function("fmod", 2),
    Function("relu", 1),
    Function("square", 1),
    Function("exp", 1, unit="special", kind="float"),
    Function("log", 1, unit="special", kind="float"),
    Function("sqrt", 1, unit="special", kind="float"),
    Function("rsqrt", 1, unit="special", kind="float"),
    Function("tanh", 1, unit="special", kind="float"),
    Function("sigmoid", 1, unit="special", kind="float"),
    Function("erf", 1, unit="special", kind="float"),
    Function("sin", 1, unit="special", kind="float"),
    Function("cos", 1, unit="special", kind="float"),
    Function("silu", 1, unit="special", kind="float"),
    Function("gelu", 1, unit="special", kind="float"),
    Function("isnan", 1, kind="test"),
    Function("isinf", 1, kind="test"),
    Function("isfinite", 1, kind="test"),
    Function("uniform", 2, kind="random"),
    *(
        Function(name, 1, unit="special", kind="float")
        for name in (
            *("exp2", "expm1", "log2", "log10", "log1p", "erfc", "tan", "asin", "acos", "atan"),
            *("sinh", "cosh", "asinh", "acosh", "atanh"),
        )
    ),
    Function("atan2", 2, unit="special", kind="float"),
)
POINTWISE = {f.name: f for f in _TABLE}
REDUCTIONS = ("sum", "max", "min", "prod", "any", "all", "argmax", "argmin")
IDENTITY: dict[str, float] = {  # of each reduction, except those that return a position
    "sum": 0,
    "prod": 1,
    "max": -float("inf"),
    "min": float("inf"),
    "any": 0,
    "all": 1,
}
IDENTITY_ELEMENTS = {name: float(value) for name, value in IDENTITY.items()}  # in an accumulator
SCANS = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}
