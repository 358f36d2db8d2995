"""Numbers with the semantics of CuTe DSL, as Python values."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from backends.shared.arrays import from_device, to_device
from ir.reference.rounding import round_to


class Number:
    """A number of a type. Two operands are promoted to the wider type. A Python number takes the
    type of the other operand; a Python float with an integer operand is a Float32."""

    dtype: Any
    kind: Any = np.int32
    width, is_float, rank, is_integer = 32, False, 0, True

    def __init_subclass__(cls) -> None:
        cls.dtype = cls

    def __init__(self, x: Any):
        x = x.value if isinstance(x, Number) else x
        self.value = self.cast(x)

    @classmethod
    def cast(cls, x: Any) -> Any:
        """A value converted to this type."""
        with np.errstate(all="ignore"):
            if cls.is_float:
                return cls.kind(x)
            if isinstance(x, int) and not isinstance(x, bool):
                return (
                    cls.kind((x + (1 << cls.width - 1)) % (1 << cls.width) - (1 << cls.width - 1))
                    if cls.kind(-1 if cls.signed() else 0) < 0
                    else cls.kind(x % (1 << cls.width))
                )
            if isinstance(x, float | np.floating):
                if x != x:
                    return cls.kind(0)
                ends = np.iinfo(cls.kind)
                return cls.kind(
                    max(ends.min, min(ends.max, int(x)))
                    if np.isfinite(x)
                    else ends.max
                    if x > 0
                    else ends.min
                )
            return np.asarray(x).astype(cls.kind)[()]

    @classmethod
    def signed(cls) -> bool:
        """Whether an integer type has a sign."""
        return np.issubdtype(cls.kind, np.signedinteger)

    def to(self, dtype: Any) -> Number:
        """The number in another type."""
        return dtype(self)

    def bitcast(self, dtype: Any) -> Number:
        """The same bits as another type."""
        if issubclass(dtype, Eight):
            return dtype.of_code(int(self.value))
        return dtype(np.asarray(self.value).view(dtype.kind)[()])

    def ir_value(self) -> Number:
        """Itself, because there is no compiler."""
        return self

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __neg__(self) -> Number:
        return type(self)(-self.value if self.is_float else -int(self.value))

    def __invert__(self) -> Number:
        return type(self)(not self.value) if self.kind is np.bool_ else type(self)(~int(self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"


def _operands(a: Any, b: Any) -> tuple[Any, Any, type]:
    """Two operands and the type that they are promoted to."""
    own = [x if isinstance(x, Number) else None for x in (a, b)]
    types = [type(x) for x in own if x is not None]
    for x in (a, b):
        if isinstance(x, bool | np.bool_):
            types.append(Boolean)
        elif isinstance(x, float) and not any(t.is_float for t in types):
            types.append(Float32)
        elif isinstance(x, int) and all(t is Boolean for t in types):
            types.append(Int32)
    found = max(types, key=lambda t: t.rank)
    return found(a).value, found(b).value, found


def _arithmetic(name: str, apply: Any, reflected: bool) -> Any:
    def call(self: Number, other: Any) -> Any:
        if not isinstance(other, Number | int | float | np.number | np.bool_):
            return NotImplemented
        a, b, found = _operands(*((other, self) if reflected else (self, other)))
        logical = name in ("and_", "or_", "xor")
        if found is Boolean and not logical:
            a, b, found = int(a), int(b), Int32
        with np.errstate(all="ignore"):
            if not found.is_float and found is not Boolean:
                a, b = int(a), int(b)
            if name == "truediv" and not found.is_float:
                a, b, found = np.float32(a), np.float32(b), Float32
            return found(apply(a, b))

    return call


def _comparison(apply: Any) -> Any:
    def call(self: Number, other: Any) -> Any:
        if not isinstance(other, Number | int | float | np.number | np.bool_):
            return NotImplemented
        a, b, _ = _operands(self, other)
        return Boolean(bool(apply(a, b)))

    return call


for _name, _sign in {
    **{
        n: n for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift", "xor")
    },
    "and_": "and",
    "or_": "or",
}.items():
    for _reflected in (False, True):
        setattr(
            Number,
            f"__{'r' if _reflected else ''}{_sign}__",
            _arithmetic(_name, getattr(operator, _name), _reflected),
        )
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{_name}__", _comparison(getattr(operator, _name)))


class Boolean(Number):
    kind, width, rank = np.bool_, 1, 0

    @classmethod
    def cast(cls, x: Any) -> Any:
        return np.bool_(x != 0)


class Int8(Number):
    kind, width, rank = np.int8, 8, 1


class Uint8(Number):
    kind, width, rank = np.uint8, 8, 2


class Uint16(Number):
    kind, width, rank = np.uint16, 16, 2


class Int16(Number):
    kind, width, rank = np.int16, 16, 3


class Int32(Number):
    kind, width, rank = np.int32, 32, 4


class Uint32(Number):
    kind, width, rank = np.uint32, 32, 5


class Int64(Number):
    kind, width, rank = np.int64, 64, 6


class Uint64(Number):
    kind, width, rank = np.uint64, 64, 7


class Eight(Number):
    """An 8-bit float, by the values of its codes. Values out of range saturate."""

    kind, width, rank, is_float = np.float32, 8, 7, True
    name, largest = "", 0.0

    @classmethod
    def cast(cls, x: Any) -> Any:
        """Rounds to nearest, ties to even."""
        with np.errstate(all="ignore"):
            x = np.float32(x)
        return round_to(np.clip(x, -cls.largest, cls.largest)[None], cls.name)[0]

    @classmethod
    def of_code(cls, code: int) -> Number:
        """The number that a code stands for, including infinities."""
        made = cls(0.0)
        made.value = from_device(np.array([code], np.uint8), cls.name)[0]
        return made

    def bitcast(self, dtype: Any) -> Number:
        """The code of the number."""
        return dtype(int(to_device(self.value[None], self.name)[0]))


class Float8E4M3FN(Eight):
    name, largest = "f8e4m3", 448.0


class Float8E5M2(Eight):
    name, largest = "f8e5m2", 57344.0


class BFloat16(Number):
    kind, width, rank, is_float = np.float32, 16, 8, True

    @classmethod
    def cast(cls, x: Any) -> Any:
        """Rounds to nearest, ties to even."""
        with np.errstate(all="ignore"):
            bits = int(np.float32(x).view(np.uint32))
        if bits & 0x7FFFFFFF > 0x7F800000:
            return np.float32(np.nan)
        bits += 0x7FFF + (bits >> 16 & 1)
        return np.uint32(bits & 0xFFFF0000).view(np.float32)


class Float16(Number):
    kind, width, rank, is_float = np.float16, 16, 9, True


class Float32(Number):
    kind, width, rank, is_float = np.float32, 32, 10, True


class TFloat32(Float32):
    pass


class Float64(Number):
    kind, width, rank, is_float = np.float64, 64, 11, True


NUMBERS = (
    *(Boolean, Int8, Uint8, Uint16, Int16, Int32, Uint32, Int64, Uint64),
    *(Float8E4M3FN, Float8E5M2, BFloat16, Float16, Float32, TFloat32, Float64),
)
