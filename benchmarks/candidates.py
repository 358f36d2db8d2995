"""Contests: kernels at some sizes, with candidate schedules. A race finds the fastest.

The candidates of a contest are files in `schedules_of_languages/TARGET/CONTEST`:
`LABEL-BACKEND.sched`. All are tuned at the contest's first sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.shapes import Row
from benchmarks.variants import with_dtype
from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY, Sizes, Workload

SPECS = Path(__file__).parent / "specs"
SCHEDULES = Path(__file__).parent / "schedules_of_languages"
TOKENS = 65536  # Heads times queries of attention: every length reads the same amount.
LENGTHS = (4096, 8192, 16384)


@dataclass(frozen=True, slots=True)
class Contest:
    """A kernel at some sizes."""

    kernel: str
    dtype: str
    sizes: Sizes  # The sizes that candidates are tuned at.
    aim: float  # The wanted speed-up over the fastest baseline.
    more: tuple[Sizes, ...] = ()  # Further sizes at which the same code is raced.
    modes: bool = False  # Whether baselines of `torch.compile` are raced.
    operands: str = ""  # The dtype in which the matrix unit multiplies. Empty: `dtype`.

    @property
    def rows(self) -> tuple[Row, ...]:
        """Returns a row for each of the sizes."""
        return tuple(Row(self.kernel, self.dtype, s) for s in (self.sizes, *self.more))

    @property
    def name(self) -> str:
        """Its name on the command line and in files."""
        return self.rows[0].key

    @property
    def file(self) -> Path:
        """The file of the kernel's spec: from the contests, or from the library."""
        own = SPECS / f"{self.kernel}.kir"
        return own if own.exists() else LIBRARY / own.name

    def work(self) -> Workload:
        """Returns the kernel, tuned at the contest's sizes."""
        found = parse_workload(self.file.read_text(encoding="utf-8"), self.kernel)
        of_contests = self.file.parent == SPECS
        spec = found.spec if of_contests else with_dtype(found.spec, self.dtype)
        return replace(found, spec=spec, tune=self.sizes)

    def candidates(self, machine: str, language: str) -> tuple[Candidate, ...]:
        """Returns its candidates for a target in a language, sorted by label."""
        files = sorted((SCHEDULES / machine / self.name).glob(f"*-{language}.sched"))
        return tuple(Candidate(self, f.name.removesuffix(f"-{language}.sched")) for f in files)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule of a contest."""

    contest: Contest
    label: str

    @property
    def name(self) -> str:
        """Its name in folders of built kernels."""
        return f"{self.contest.name}.{self.label}"

    @property
    def more(self) -> tuple[Sizes, ...]:
        """Sizes besides those at which it is tuned and checked."""
        return self.contest.more

    def work(self) -> Workload:
        """Returns the kernel, tuned at the contest's sizes."""
        return self.contest.work()

    def schedule(self, machine: str, language: str) -> Path:
        """Returns the file of its schedule for a target."""
        return SCHEDULES / machine / self.contest.name / f"{self.label}-{language}.sched"


def _attention(kernel: str, depth: int) -> Contest:
    first, *more = (dict(H=TOKENS // n, M=n, N=n, D=depth) for n in LENGTHS)
    return Contest(kernel, "bf16", first, 0.95, tuple(more))


CONTESTS = {
    c.kernel + (f"_{c.sizes['D']}" if "D" in c.sizes else ""): c
    for c in (
        *(_attention(k, d) for k in ("attention", "attention_causal") for d in (64, 128)),
        Contest("matmul_bf16", "bf16", dict(M=8192, K=8192, N=8192), 0.97),
        Contest("matmul_tf32", "f32", dict(M=8192, K=8192, N=8192), 0.95, operands="tf32"),
        Contest("matmul_f32", "f32", dict(M=4096, K=4096, N=4096), 2.0),
        Contest("matmul_f8", "f8e4m3", dict(M=8192, K=8192, N=8192), 0.92),
        Contest("matmul_bias_gelu", "bf16", dict(M=4096, K=1024, N=4096), 1.25, modes=True),
        Contest("conv1d", "f16", dict(B=2048, C=96, O=96, L=200), 1.3, modes=True),
        Contest(
            "conv_phases",
            "f32",
            dict(B=16, C=64, O=512, H=128, W=128),
            1.0,
            (dict(B=128, C=64, O=256, H=128, W=128),),
            operands="tf32",
        ),
        Contest("conv2d", "f16", dict(B=1024, C=32, O=32, H=28, W=28), 1.3, modes=True),
    )
}


def asked_contests(names: str) -> tuple[Contest, ...]:
    """Parses the names of contests, separated by commas, or `all`. Raises KernelError for an
    unknown name."""
    wanted = list(CONTESTS) if names == "all" else [n for n in names.split(",") if n]
    if unknown := [n for n in wanted if n not in CONTESTS]:
        raise KernelError(f"there is no contest `{unknown[0]}`", allowed=", ".join(CONTESTS))
    return tuple(CONTESTS[n] for n in wanted)
