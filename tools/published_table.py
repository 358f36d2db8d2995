"""The table of times that others measured on a target, with those of the time model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.markdown import cut, line


def published(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows with the model's errors, its sources and its
    summary."""
    languages = result["published"]
    head = ("measured by others", "sizes", "us", *(f"{n}, us" for n in languages), "errors", "")
    lines = [line(head), line(["---", "---"] + ["---:"] * (len(head) - 2))]
    sources: list[str] = []
    for row in result["rows"]:
        made = [row[n] for n in languages]
        url = row["url"]
        sources += [] if url in sources else [url]
        times = [f"{m['us']:.2f}" if "us" in m else "failed" for m in made]
        errors = " / ".join(f"{100 * m['error']:+.1f}%" if "us" in m else "-" for m in made)
        sizes = " ".join(f"{k}={v}" for k, v in row["sizes"].items())
        note = f"[{sources.index(url) + 1}]"
        lines.append(line([row["what"], sizes, f"{row['published_us']:.2f}", *times, errors, note]))
    told = {r["url"]: r["source"] for r in reversed(result["rows"])}
    tools = ", ".join(f"`{n}` by {t}" for n, t in result["toolchains"].items())
    means = ", ".join(f"`{n}` {cut(mean)}" for n, mean in result["summary"].items())
    return [
        f"`{result['command']}`, {result['date']}, {result['machine']}: {tools}. Each with the schedule that "
        "the time model prefers; nothing was run here, times are modelled.",
        "\n".join(lines),
        "\n".join(f"{n}. {told[url]}: <{url}>" for n, url in enumerate(sources, 1)),
        f"Published over modelled time, geometric mean: {means}.",
    ]
