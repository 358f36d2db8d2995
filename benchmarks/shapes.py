"""The rows of the starter table: kernel, dtype and sizes, the most important first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ir.errors import KernelError
from ir.workload import LIBRARY, Sizes

INTEGERS = "i32"  # The dtype of a row whose kernel has no floats.


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    kernel: str
    dtype: str  # Dtype of the float inputs and outputs.
    sizes: Sizes  # The free sizes.

    @property
    def key(self) -> str:
        """The row's name in files, as `conv1d__B2048_C96_O96_L200__f16`."""
        return f"{self.kernel}__{shape_key(self.sizes)}__{self.dtype}"


def shape_key(sizes: Sizes) -> str:
    """Formats sizes in the given order, as `B2048_C96`."""
    return "_".join(f"{name}{number}" for name, number in sizes.items())


# The sizes of the published recommendation-model kernels (KernelEvolve, arXiv 2512.23236), then
# sizes typical of one layer of such a model or of a language model. First the dtypes of production
# models, then f32. Each block is (kernel, dtypes, sizes, ...).
_FIRST = (
    ("conv1d", ("f16",), dict(B=2048, C=96, O=96, L=200), dict(B=1024, C=96, O=96, L=200)),
    (
        "wukong_fm",
        ("f16",),
        dict(B=1024, N=24, D=224, K=2198),
        dict(B=1024, N=40, D=224, K=448),
        dict(B=1024, N=48, D=224, K=448),
    ),
    (
        "pffn",
        ("f16",),
        dict(B=1024, N=200, D=256, K=160),
        dict(B=1024, N=200, D=192, K=96),
        dict(B=1024, N=400, D=256, K=160),
        dict(B=1024, N=150, D=96, K=192),
    ),
    ("map_id", (INTEGERS,), dict(U=5000, B=20000), dict(U=100, B=2000), dict(U=10000, B=50000)),
    ("attention", ("bf16",), dict(H=32, M=2048, N=2048, D=64)),
    ("matmul_bias_gelu", ("bf16",), dict(M=4096, K=1024, N=4096)),
    ("rmsnorm_matmul", ("bf16",), dict(M=4096, K=2048, N=2048)),
    ("softmax", ("f16",), dict(M=4096, K=4096)),
    ("layer_norm", ("f16",), dict(M=4096, K=4096)),
    ("embedding_bag", ("f16",), dict(V=1_000_000, D=128, L=131072, B=4096)),
    ("pairwise_dot", ("f16",), dict(B=4096, F=27, D=128)),
    ("conv2d", ("f16",), dict(B=1024, C=32, O=32, H=28, W=28)),
    ("max_pool2d", ("f16",), dict(N=1024, C=16, H=56, W=56)),
    ("cumsum", ("f16",), dict(M=4096, K=4096)),
)
_MATRIX = ("attention", "matmul_bias_gelu", "rmsnorm_matmul")  # Models use bf16. f16 is raced too.


def rows() -> Iterator[Row]:
    """Yields all rows: first each kernel's own dtypes, then f32, then the third dtype of
    products."""
    for kernel, dtypes, *shapes in _FIRST:
        yield from (Row(kernel, dtype, sizes) for dtype in dtypes for sizes in shapes)
    for kernel, dtypes, *shapes in _FIRST:
        if dtypes != (INTEGERS,):
            yield Row(kernel, "f32", shapes[0])
            yield from (Row(kernel, "f16", s) for s in shapes if kernel in _MATRIX)
    yield Row("conv1d", "f32", _FIRST[0][3])


def asked_kernels(given: str) -> list[str]:
    """Parses the option `--kernels`: names of library kernels separated by commas, or empty for
    all.

    Raises KernelError for an unknown kernel.
    """
    every = sorted(p.stem for p in LIBRARY.glob("*.kir"))
    names = [n for n in given.split(",") if n] or every
    if unknown := [n for n in names if n not in every]:
        raise KernelError(f"there is no kernel `{unknown[0]}`", allowed=", ".join(every))
    return names
