"""The table of what builds report in all languages of one target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.markdown import cut, line

FIGURES = ("registers", "shared_bytes", "mix.matrix", "loop.matrix", "loop.shared", "loop.load")
TITLES = ("registers", "shared memory", "matrix", "in loops", "shared, in loops", "loads, in loops")


def static(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows, failures and summary. Ratios are truncated."""
    first, *others = languages = result["static"]
    head = ("kernel", *(f"{n}, us" for n in languages), "ratio", *TITLES, "occupancy")
    lines = [line(head), line(["---"] + ["---:"] * (len(head) - 1))]
    for row in result["rows"]:
        made = [row[n] for n in languages]
        times = [f"{m['us']:.2f}" if "us" in m else "failed" for m in made]
        known = all("us" in m for m in made)
        ratio = cut(made[0]["us"] / made[-1]["us"]) if known else "-"
        pairs = [" / ".join(f"{m.get(f, 0):.0f}" for m in made) for f in FIGURES]
        held = " / ".join(f"{m.get('occupancy', 0):.2f}" for m in made)
        lines.append(line([row["kernel"], *times, ratio, *pairs, held]))
    failures = [
        f"- `{row['kernel']}` in `{name}`: {row[name]['failure']}."
        for row in result["rows"]
        for name in languages
        if "failure" in row[name]
    ]
    tools = ", ".join(f"`{n}` by {t}" for n, t in result["toolchains"].items())
    origin = (
        f"`{result['command']}`, {result['date']}, {result['machine']}: {tools}. The schedule that a search "
        f"begins with; nothing was run, times are modelled. {' / '.join(languages)}: matrix instructions "
        "of the text, and instructions of its loops."
    )
    summaries = []
    for name in others:
        found = result["summary"][name]
        mean, least = cut(found["geometric_mean"]), cut(found["min"])
        summaries.append(
            f"`{name}` over `{first}`, modelled, {found['kernels']} kernels: geometric mean {mean}, "
            f"least {least}."
        )
    return [
        origin,
        "\n".join(lines),
        *(["\n".join(failures)] if failures else []),
        " ".join(summaries),
    ]
