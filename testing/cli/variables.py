"""The variables of a run of the command in a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def variables(home: Path, work: Path) -> dict[str, str]:
    """Those for a home of its own, and for where the user stands.

    What backends compile for themselves once is not compiled again for a test.
    """
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
        "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path),
        "BUILD_WORKING_DIRECTORY": str(work),
    }
