"""The table of how long whole modules take from PyTorch to built kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.markdown import line

_PARTS = ("start", "import", "schedule", "build")
_HEAD = ("module", "target", "steps", "kernels", *_PARTS, "in all, s", "limit, s", "processor, s")


def compile_time(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file and its rows."""
    lines = [line(_HEAD), line(["---", "---"] + ["---:"] * (len(_HEAD) - 2))]
    for row in result["rows"]:
        counts = [str(row[name]) for name in ("steps", "kernels")]
        parts = [f"{row['wall_s'][name]:.1f}" for name in _PARTS]
        whole = [f"{row[name]:.1f}" for name in ("total_wall_s", "limit_s", "total_cpu_s")]
        lines.append(line([f"`{row['module']}`", row["target"], *counts, *parts, *whole]))
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    origin = (
        f"`{result['command']}`, {result['date']}, {result['machine']}, {versions}. Wall seconds of each part, measured; "
        "in all; of the processor."
    )
    return [origin, "\n".join(lines)]
