"""How long parsing takes: `bazel test --config=benchmark //ir/...`. A search parses one text a
step."""

import pytest

from ir.lower.verbs import require_legal
from ir.parse.parse import parse_schedule, parse_spec, parse_workload
from ir.print import spec_text
from ir.verify import _facts
from ir.workload import LIBRARY
from testing.samples.samples import SMALL

NAMES = ("softmax", "rmsnorm_matmul", "attention", "pffn", "conv2d")
SCHEDULE = """schedule(rmsnorm_matmul)
tile(m, size=128)
tile(n, size=256)
tile(k, size=64)
place(m.outer, level=grid)
place(n.outer, level=grid)
place(k.outer, level=loop)
fuse(ss, into=acc)
hoist(r, into=y)
load(x, at=k.outer)
load(w, at=k.outer)
pipeline(x, stages=3)
pipeline(w, stages=3)
compute(acc, unit=matrix, acc=f32)
"""


def test_reading_a_schedule(benchmark):
    assert len(benchmark(parse_schedule, SCHEDULE).decisions) == 13


def test_reading_and_verifying_a_schedule(benchmark):
    spec = parse_workload((LIBRARY / "rmsnorm_matmul.kir").read_text()).spec
    benchmark(lambda: require_legal(spec, parse_schedule(SCHEDULE), SMALL))


@pytest.mark.parametrize("name", NAMES)
def test_reading_and_verifying_a_spec(benchmark, name):
    text = (LIBRARY / f"{name}.kir").read_text().split("\ntune")[0]

    def read():
        _facts.cache_clear()
        return parse_spec(text)

    assert benchmark(read).name == name


@pytest.mark.parametrize("name", NAMES)
def test_printing_a_spec(benchmark, name):
    text = (LIBRARY / f"{name}.kir").read_text().split("\ntune")[0]
    assert benchmark(spec_text, parse_spec(text)) == text
