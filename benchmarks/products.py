"""Races large products and attention against PyTorch's libraries on a device.

(a) f32 matrices, accurate to f32 on a matrix unit with a narrower type; (b) bf16 matrices; (c)
attention in bf16, causal and not. It reports rates besides times, and needs what `starter` needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.results import Table
from benchmarks.shapes import Row
from benchmarks.starter import asked_baselines, parser, run
from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.spec import Spec

SPECS = Path(__file__).parent / "specs"
TOKENS = 65536  # Heads times queries: every length reads the same amount.
LENGTHS = (4096, 8192, 16384)
EXAMPLES = """
examples:
  python3 -m benchmarks.products --target=h200 --out=benchmarks/results/h200/products.json
  python3 -m benchmarks.products --target=h200 --out=p.json --kernels=matmul_f32 --baselines=eager
"""


def rows() -> Iterator[Row]:
    """Yields all rows."""
    yield Row("matmul_f32", "f32", dict(M=4096, K=4096, N=4096))
    yield Row("matmul_bf16", "bf16", dict(M=8192, K=8192, N=8192))
    for depth in (64, 128):
        for kernel in ("attention_causal", "attention"):
            for length in LENGTHS:
                heads = TOKENS // length
                yield Row(kernel, "bf16", dict(H=heads, M=length, N=length, D=depth))


def spec_of(row: Row) -> Spec:
    """Returns the spec of a row, from `specs/`."""
    text = (SPECS / f"{row.kernel}.kir").read_text(encoding="utf-8")
    return parse_workload(text, row.kernel).spec


def work(row: Row) -> int:
    """Returns the conventional count of operations: two for a multiplication and its addition.

    For causal attention it is half of all products, whatever is computed.
    """
    s = row.sizes
    if row.kernel.startswith("matmul"):
        return 2 * s["M"] * s["N"] * s["K"]
    if row.kernel == "conv1d":
        return 2 * s["B"] * s["O"] * s["L"] * s["C"] * 3
    if row.kernel == "conv_phases":
        return 2 * s["B"] * s["O"] * s["H"] * s["W"] * s["C"] * 4
    if row.kernel == "conv2d":
        return 2 * s["B"] * s["O"] * s["H"] * s["W"] * s["C"] * 9
    whole = 4 * s["H"] * s["M"] * s["N"] * s["D"]
    return whole // 2 if row.kernel == "attention_causal" else whole


def rates(row: Row, made: Table, peak: float) -> Table:
    """Adds rates in TFLOP/s to a row: ours, each baseline's, and ours over a peak (operations per
    second)."""
    flops = work(row)
    made["work_flops"] = flops
    made["tflops"] = 1e-6 * flops / made["us"] if made["us"] else None
    made["peak_share"] = 1e12 * made["tflops"] / peak if made["us"] else None
    made["baselines_tflops"] = {
        name: 1e-6 * flops / us if us else None for name, us in made["baselines_us"].items()
    }
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a row failed."""
    asked = parser("products", __doc__.splitlines()[0], EXAMPLES).parse_args(arguments)
    named = [k for k in asked.kernels.split(",") if k]
    known = {row.kernel for row in rows()}
    try:
        for kernel in named:
            if kernel not in known:
                raise KernelError(
                    f"there is no kernel `{kernel}`", allowed=", ".join(sorted(known))
                )
        chosen = [
            (row, spec_of(row), asked_baselines(row.kernel, asked.baselines))
            for row in rows()
            if not named or row.kernel in named
        ]
        return run(asked, chosen, "benchmarks.products", rates)
    except KernelError as error:
        print(f"products: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
