"""The table `[hip]` of a target file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from backends.hip.table import check
from ir.errors import KernelError
from machines.registry import read

TARGETS = Path(__file__).parents[1] / "targets"


def changed(**fields):
    table = tomllib.loads((TARGETS / "mi300.toml").read_text(encoding="utf-8"))
    for path, value in fields.items():
        group, _, field = path.partition("__")
        table[group][field] = value
    return read(table)


def test_the_targets_are_as_they_should_be():
    for name in ("mi300", "mi350"):
        check(read(tomllib.loads((TARGETS / f"{name}.toml").read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (dict(hip__arch="gfx90a"), "field `hip.arch` is 'gfx90a'"),
        (dict(hip__arch=942), "field `hip.arch` is 942"),
        (dict(hip__more=1), "`hip.more`"),
        (dict(levels__warp=32), "field `levels.warp` is 32, for backend 'hip'"),
        (dict(hip__arch="gfx950"), "has 'mfma_cdna3', and `hip.arch` is gfx950"),
    ],
)
def test_what_is_wrong_is_named(fields, said):
    with pytest.raises(KernelError) as seen:
        check(changed(**fields))
    assert said in str(seen.value)


def test_an_engine_that_fills_lds_says_how_many_bytes_a_thread_moves():
    table = tomllib.loads((TARGETS / "mi300.toml").read_text(encoding="utf-8"))
    del table["gpu"]["lds_copy_bytes"]
    with pytest.raises(KernelError, match="field `gpu.lds_copy_bytes` is missing"):
        read(table)
