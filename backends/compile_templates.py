"""Compiles all templates into the folder that is its only argument, for processes that cannot save
compiled templates themselves."""

from __future__ import annotations

import sys
from pathlib import Path

from backends.emit import compile_ahead

if __name__ == "__main__":
    compile_ahead(Path(sys.argv[1]))
