"""Operations on layouts against NVIDIA's own in Python, pycute (tools/cute_table.py).

Results are compared as functions of a linear index, mode by mode. Their form may differ: here a
mode of extent 1 has stride 0, where pycute keeps a stride that is never used. What is refused
here is what pycute answers with a layout that lost elements.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from backends.gpu.layout import algebra
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.layout.text import parse_layout
from ir.errors import KernelError

TABLE = json.loads((Path(__file__).parent / "testdata" / "cute.json").read_text(encoding="utf-8"))
OPERATIONS = {
    "coalesce": algebra.coalesce,
    "coalesce_by_mode": lambda a: algebra.coalesce(a, (1,) * len(a)),
    "composition": algebra.composition,
    "composition_by_mode": algebra.composition,
    "complement": algebra.complement,
    "right_inverse": algebra.right_inverse,
    "left_inverse": algebra.left_inverse,
    "logical_divide": algebra.logical_divide,
    "zipped_divide": algebra.zipped_divide,
    "tiled_divide": algebra.tiled_divide,
    "logical_product": algebra.logical_product,
    "swizzle": lambda bits, base, shift, index: Swizzle(bits, base, shift)(index),
}


def value(given):
    """An argument or a result as the table has it."""
    if isinstance(given, list):
        return tuple(map(value, given))
    return parse_layout(given) if isinstance(given, str) else given


def function(layout):
    """A layout as values: the indices of each mode."""
    return [mode.indices() for mode in layout] if isinstance(layout, Layout) else layout


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_those_of_the_oracle(name):
    seen = Counter()
    for *given, result in TABLE[name]:
        arguments, wanted = tuple(map(value, given)), value(result)
        try:
            found = OPERATIONS[name](*arguments)
        except KernelError:
            assert loses_elements(arguments[1], wanted, name), (given, result)
            seen["refused"] += 1
        else:
            assert function(found) == function(wanted), (given, result, str(found))
            seen["equal" if found == wanted else "equal as functions"] += 1
    assert seen["refused"] <= 0.05 * len(TABLE[name])


def loses_elements(tiler, result, name):
    """Whether a result has fewer elements than the tiler asks for: pycute does not check that a
    tile consists of whole modes, and drops what is left over."""
    kept = list(result) if isinstance(tiler, tuple) else [result]
    kept = [result[1]] if name == "logical_product" else kept
    asked = tiler if isinstance(tiler, tuple) else (tiler,)
    return any(mode.size < one.size for mode, one in zip(kept, asked))


def test_the_table_has_cases_of_all_operations():
    cases = {name for name, rows in TABLE.items() if isinstance(rows, list)}
    assert cases == set(OPERATIONS)
    assert all(len(TABLE[name]) >= 300 for name in cases)
    assert "4.2.0.0" in TABLE["oracle"]
