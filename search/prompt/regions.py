"""The regions of a prompt that may evolve. All other parts are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache

from ir.digest import text_digest
from ir.errors import KernelError
from search.prompt.render import FOLDER

ENDING = ".md"
MOST = 4000  # characters of a region


@dataclass(frozen=True, slots=True)
class Regions:
    """How to think, what tends to help, what tends to fail, how to read an analysis."""

    philosophy: str
    strategies: str
    pitfalls: str
    analysis: str

    def __post_init__(self) -> None:
        for name, text in self.files().items():
            if not text.strip() or len(text) > MOST:
                raise KernelError(
                    f"the region `{name}` has {len(text)} characters",
                    allowed=f"1 to {MOST}, not only blanks",
                )

    @property
    def digest(self) -> str:
        """The digest of all texts."""
        return text_digest("\0".join(self.files().values()))

    def files(self) -> dict[str, str]:
        """The texts by file name."""
        return {f.name + ENDING: getattr(self, f.name) for f in fields(self)}

    def with_files(self, changed: Mapping[str, str]) -> Regions:
        """The regions with new texts for some files. Raises KernelError if one is empty or too
        long."""
        return replace(self, **{name.removesuffix(ENDING): t for name, t in changed.items()})


@cache
def first_regions() -> Regions:
    """The initial regions: the files of `templates/prompts/regions`."""
    names = (f.name for f in fields(Regions))
    texts = {n: (FOLDER / "regions" / (n + ENDING)).read_text(encoding="utf-8") for n in names}
    return Regions(**texts)
