"""Triton's launch stubs: small C extensions, one for each signature of a kernel, that some versions of
Triton compile at the first launch. A process compiles each once, whatever cache a build has."""

from __future__ import annotations

import sysconfig

from triton.runtime.cache import FileCacheManager

_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
_made: dict[tuple[str, str], bytes] = {}  # by Triton's key of the source, and the file's name


class StubCache(FileCacheManager):
    """A cache of files that lacks no extension which this process has compiled for another cache, and has no
    other: what somebody put into a folder is never loaded as native code."""

    def get_file(self, filename: str) -> str | None:
        if not filename.endswith(_SUFFIX):
            return super().get_file(filename)
        made = _made.get((self.key, filename))
        return None if made is None else self.put(made, filename)

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        if filename.endswith(_SUFFIX) and isinstance(data, bytes):
            _made[self.key, filename] = data
        return super().put(data, filename, binary)
