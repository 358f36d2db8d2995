"""Triton's cache of a build, in the process that runs the kernels. Another process may have
compiled them, in a folder that no longer exists."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from triton.runtime.cache import FileCacheManager

_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
_made: dict[tuple[str, str], bytes] = {}  # by Triton's key of the source, and the file's name


class Lacking(Exception):
    """A kernel that was not compiled."""


class BuildCache(FileCacheManager):
    """A file cache that finds kernels wherever they were compiled.

    Triton's launch stubs are small C extensions, one for each signature of a kernel, which some
    versions of Triton compile at the first launch. The cache has all stubs that this process
    compiled for any cache, and no others: a file that somebody put into a folder is never loaded as
    native code.
    """

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a kernel, by name. Triton records their paths at compile time; here they are
        exactly the files of the cache's folder."""
        if not (self.has_file(f"__grp__{filename}") and self.has_file(filename)):
            return None
        files = (file for file in Path(self.cache_dir).iterdir() if file.is_file())
        return {f.name: str(f) for f in files if not f.name.startswith("__grp__")}

    def get_file(self, filename: str) -> str | None:
        if not filename.endswith(_SUFFIX):
            return super().get_file(filename)
        made = _made.get((self.key, filename))
        return None if made is None else self.put(made, filename)

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        if filename.endswith(_SUFFIX) and isinstance(data, bytes):
            _made[self.key, filename] = data
        return super().put(data, filename, binary)


class CompiledApart(BuildCache):
    """A `BuildCache` for processes in which nothing is compiled."""

    def get_group(self, filename: str) -> dict[str, str]:
        """As in `BuildCache`, but raises Lacking where Triton would compile the kernel in this process."""
        found = super().get_group(filename)
        if found is None:
            raise Lacking(f"`{Path(filename).stem}` was not compiled for such arguments")
        return found
