"""An extension that was compiled for one cache is there in another; other files are not."""

import sysconfig

import pytest
from triton import knobs
from triton.runtime.cache import get_cache_manager

from backends.triton.device import stubs
from backends.triton.device.stubs import StubCache

STUB = f"launch{sysconfig.get_config_var('EXT_SUFFIX')}"
KEY, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """What gives the cache of a key, in a folder."""
    monkeypatch.setattr(stubs, "_made", {})

    def of(key, folder):
        with knobs.cache.scope():
            knobs.cache.dir = str(tmp_path / folder)
            knobs.cache.manager_class = StubCache
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
    stubs._made.clear()
    assert first.get_file(STUB) is None
    first.put(b"ours", STUB)
    with open(planted, "wb") as file:
        file.write(b"another")
    with open(first.get_file(STUB), "rb") as file:
        assert file.read() == b"ours"
