"""Descriptors: tensors as the copy engine is told of them, and when it can take them."""

from __future__ import annotations

from dataclasses import dataclass

from backends.backend import BackendError
from backends.triton.emit import spelling
from backends.triton.emit.blocks import Block, Blocks
from ir.nest.nest import Load, Slice, Store
from ir.spec import DTYPES, Expr

ALIGNED = 16  # bytes that strides and addresses are multiples of
MOST = 256  # elements of a box along one dimension


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor in boxes. name: its argument.  flag: the constant that tells whether there is
    one.  condition, made: when and how the launcher makes it.  at: where a box starts.  box: its
    shape, one element along scalars."""

    name: str
    flag: str
    condition: str
    made: str
    at: str
    box: str

    def load(self, shape: str) -> str:
        """A box, as a tensor of a shape."""
        call = f"{self.name}.load([{self.at}])"
        return call if shape == self.box else f"tl.reshape({call}, {shape})"

    def store(self, value: str, shape: str) -> str:
        """The call that stores a tensor of a shape into a box."""
        boxed = value if shape == self.box else f"tl.reshape({value}, {self.box})"
        return f"{self.name}.store([{self.at}], {boxed})"


def describe(s: Load | Store, dtype: str, shape: tuple[Expr, ...], blocks: Blocks) -> Descriptor:
    """The descriptor of a region of a tensor; BackendError where it is no box of one."""
    value = spelling.value(s.value)
    flag = f"BULK_{s.value.upper()}"
    widths = [_width(s, one, blocks) for one in s.region]
    strides = [
        " * ".join(spelling.factor(e) for e in shape[d + 1 :]) or "1" for d in range(len(shape))
    ]
    launched = [_launched(w, one, blocks) for w, one in zip(widths, s.region, strict=True)]
    per_row = ALIGNED // DTYPES[dtype]
    conditions = [f"{spelling.factor(shape[-1])} % {per_row} == 0"] if len(shape) > 1 else []
    conditions += [f"{w} <= {MOST}" for w in launched if not w.isdigit()]
    sizes = ", ".join(spelling.size(e) for e in shape)
    box = f"[{', '.join(widths)}]"
    boxed = f"[{', '.join(launched)}]"
    return Descriptor(
        name=f"{value}_desc",
        flag=flag,
        condition=" and ".join(conditions) or "True",
        made=f"TensorDescriptor({s.tensor}, [{sizes}], [{', '.join(strides)}], {boxed})",
        at=", ".join(_start(one, blocks) for one in s.region),
        box=box,
    )


def _block(one: Slice, blocks: Blocks) -> Block | None:
    return blocks[one.terms[0][0]] if one.terms else None


def _width(s: Load | Store, one: Slice, blocks: Blocks) -> str:
    """The width of a box along a dimension."""
    plain = one.rows is None and len(one.terms) < 2 and all(c == 1 for _, c in one.terms)
    block = _block(one, blocks)
    if (
        not plain
        or block
        and block.tile
        and block.tile != block.width
        or block
        and block.width > MOST
    ):
        raise BackendError(
            "emit",
            f"`{s.tensor}` cannot be moved in bulk: its tiles are no boxes of powers of two, "
            f"{MOST} at most along each dimension",
        )
    return block.text if block else "1"


def _launched(width: str, one: Slice, blocks: Blocks) -> str:
    """The width of a box as the launcher computes it."""
    block = _block(one, blocks)
    if block is None or block.width:
        return width
    return dict(blocks.constants())[width]


def _start(one: Slice, blocks: Blocks) -> str:
    """Where a box starts along a dimension."""
    parts = []
    if one.terms and (blocks[one.terms[0][0]].tile or blocks[one.terms[0][0]].scalar):
        parts.append(spelling.origin(one.terms[0][0]))
    return spelling.total([*parts, spelling.size(one.offset)])
