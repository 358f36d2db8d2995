"""Cases of kernels whose tensors, indices and sizes have names that a language or a text uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from backends.backend import Backend, Reserves
from ir.print import spec_text
from ir.verify import facts
from testing.conformance.case import Case
from testing.conformance.kernels import check_lines, kernel
from testing.samples.named_specs import named_specs

# Forms that a text may give names of its own: suffixes, prefixes, and words of any language.
FORMS = (
    *(
        "x_ptr x_desc x_factor x x_at offs_x in_x tiles_x x_step x_low part_1 x_dim0 x_3 f_0".split()
    ),
    *("input double a_ __ _a rank self args BLOCK_X EVEN_X STEPS_X BULK_X LOG2_E M_ M".split()),
    *("box box_n n n_at n_n n_t a__b a_b wchar char8 f32_n_0 size axes slot main exp".split()),
    *("i_tiles i i_low INT64_MAX SIZE_MAX KERNEL NULL M__N".split()),
)
NO_TWO = {  # inputs, equations, the size of the result: two names that one text may make one
    "x_ptr": ("x: f32[M], y_0: f32[M]", ("x_ptr[m] = x[m] * 2.0", "y[m] = x_ptr[m] - y_0[m]")),
    "part_1": (
        "x: f32[M, N]",
        (
            "part_1[m, n] = x[m, n] + pad(x[m, n - 1], 1.0)",
            "y[m] = sum(silu(part_1[m, n] * 2.0), n)",
        ),
    ),
    "f_0": ("x: f32[M], f_0: f32[M]", ("y[m] = x[m] - f_0[m]",)),
    "BLOCK_M": ("x: f32[BLOCK_M], at: i32[BLOCK_M]", ("y[m] = pad(x[at[m]], 0.0) * x[m]",)),
    "offs_n": (
        "x: f32[M, N], n: f32[M]",
        ("y[in_n] = sum(x[in_n, offs_n] * n[in_n], offs_n)",),
    ),
    "a__b": ("a__b: f32[M], a_b: f32[M]", ("y[m] = a__b[m] - a_b[m]",)),
    "box": ("x: f32[M, N]", ("t[box, n] = x[box, n] * 2.0", "y[box] = sum(t[box, n], n)")),
    "f32_m_0": ("x: f32[M], f32_m_0: f32[M]", ("y[m] = exp(x[m] * 2.0) * f32_m_0[m]",)),
}


def name_cases(backend: Backend, every_role: bool = True) -> Iterator[Case]:
    """The backend's own words too, each as a tensor, an attribute, an index or a size; in each of the
    first three roles, or in one."""
    words = sorted(backend.words()) if isinstance(backend, Reserves) else ()
    for number, spec in enumerate(named_specs([*words, *FORMS], every_role)):
        sizes = dict(zip(facts(spec).sizes, (5, 7, 3), strict=False))
        text = spec_text(spec) + check_lines((sizes,))
        yield Case(f"names, {number}", text, ("names",), "plain")
    for name, (inputs, lines) in NO_TWO.items():
        size = "BLOCK_M" if "BLOCK_M" in inputs else "M"
        sizes = {s: n for s, n in ((size, 5), ("N", 7)) if re.search(rf"\b{s}\b", inputs)}
        text = kernel(inputs, {"y": (f"f32[{size}]", lines[-1])}, (sizes,), *lines[:-1])
        yield Case(f"names, no two become one: {name}", text, ("names",), "plain")
