"""Kernels are found wherever they were compiled. An extension that was compiled for one cache is there in another;
other files are not."""

import sysconfig
from pathlib import Path

import pytest
from triton import knobs
from triton.runtime.cache import get_cache_manager

from backends.triton.device import build_cache
from backends.triton.device.build_cache import BuildCache, CompiledApart, Lacking

STUB = f"launch{sysconfig.get_config_var('EXT_SUFFIX')}"
KEY, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """What gives the cache of a key, in a folder."""
    monkeypatch.setattr(build_cache, "_made", {})

    def of(key, folder, kind=BuildCache):
        with knobs.cache.scope():
            knobs.cache.dir = str(tmp_path / folder)
            knobs.cache.manager_class = kind
            return get_cache_manager(key)

    return of


def test_a_stub_of_one_cache_is_there_in_another(cache, tmp_path):
    assert cache(KEY, "one").get_file(STUB) is None
    cache(KEY, "one").put(b"code", STUB)
    found = cache(KEY, "two").get_file(STUB)
    assert found.startswith(str(tmp_path / "two"))
    with open(found, "rb") as file:
        assert file.read() == b"code"
    assert cache(OTHER, "two").get_file(STUB) is None


@pytest.mark.parametrize("name, data", [("kernel.cubin", b"code"), ("kernel.json", "{}")])
def test_what_a_kernel_is_made_of_belongs_to_one_cache(cache, name, data):
    cache(KEY, "one").put(data, name)
    assert cache(KEY, "one").get_file(name) and cache(KEY, "two").get_file(name) is None


def test_an_extension_that_another_process_put_into_a_folder_is_compiled_anew(cache):
    first = cache(KEY, "one")
    planted = first.put(b"code", STUB)
    build_cache._made.clear()
    assert first.get_file(STUB) is None
    first.put(b"ours", STUB)
    with open(planted, "wb") as file:
        file.write(b"another")
    with open(first.get_file(STUB), "rb") as file:
        assert file.read() == b"ours"


KERNEL = {"scale.json": "{}", "scale.cubin": b"code"}


def compiled(cache, folder):
    """A cache with a kernel, as Triton leaves it."""
    one = cache(KEY, folder)
    one.put_group("scale.json", {name: one.put(data, name) for name, data in KERNEL.items()})
    return one


def test_the_files_of_a_kernel_are_found_when_their_folder_has_moved(cache, tmp_path):
    compiled(cache, "one")
    (tmp_path / "one").rename(tmp_path / "two")
    found = cache(KEY, "two").get_group("scale.json")
    assert set(found) == set(KERNEL) and (tmp_path / "two") in Path(found["scale.json"]).parents
    assert all(Path(file).is_file() for file in found.values())


def test_a_kernel_has_no_file_of_another_folder(cache, tmp_path):
    (tmp_path / "secret").write_text("mine")
    one = compiled(cache, "one")
    one.put_group("scale.json", {"scale.json": str(tmp_path / "secret"), "s": str(tmp_path)})
    assert set(one.get_group("scale.json")) == set(KERNEL)


@pytest.mark.parametrize("left", ["scale.json", "__grp__scale.json"])
def test_a_kernel_that_lacks_a_file_is_not_there(cache, left):
    one = compiled(cache, "one")
    Path(one.cache_dir, left).unlink()
    assert one.get_group("scale.json") is None
    with pytest.raises(Lacking, match="`scale` was not compiled"):
        cache(KEY, "one", CompiledApart).get_group("scale.json")
    assert compiled(cache, "one") and cache(KEY, "one", CompiledApart).get_group("scale.json")
