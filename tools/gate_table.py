"""The table of the cost of checking candidates with the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import line

LEAST = 0.05  # Shorter waits are not reported, in seconds.


def gate(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its summary and the seconds per check, by kernel, backend and
    kind of source."""
    ways = list(dict.fromkeys((r["backend"], r["source"]) for r in result["rows"]))
    by_kernel: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in result["rows"]:
        by_kernel.setdefault(row["kernel"], {})[row["backend"], row["source"]] = row
    head = ("kernel", "numbers", *(f"{backend}, {source}" for backend, source in ways))
    lines = [line(head), line(["---"] + ["---:"] * (len(head) - 1))]
    for kernel, rows in by_kernel.items():
        numbers = f"{next(iter(rows.values()))['numbers']:,}"
        lines.append(line([kernel, numbers, *(_seconds(rows.get(way)) for way in ways)]))
    return [_origin(result), "\n".join(lines), _summary(result["summary"])]


def _origin(result: Mapping[str, Any]) -> str:
    versions = result.get("versions", {"python": result["python"]})
    apart = any("waiting to check" in row["seconds"] for row in result["rows"])
    told = (
        " Beside: to build code for its sizes, and to wait for others on the device."
        if apart
        else ""
    )
    said = [result["machine"], *(f"{name} {number}" for name, number in versions.items() if number)]
    return (
        f"`{result['command']}`, {result['date']}, {', '.join(said)}, secret `{result['secret']}`. Seconds that "
        f"the check takes, runs included, the median of {result['rounds'] - 1}; {result['at_once']} at a time.{told}"
    )


def _seconds(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    if not row["accepted"]:
        return "refused"
    waited = row["seconds"].get("waiting to check", 0.0)
    built = row["seconds"].get("build to check", 0.0)
    aside = [f"{s:.2f} {what}" for s, what in ((built, "built"), (waited, "waited")) if s >= LEAST]
    return f"{row['seconds']['check'] - waited:.2f}" + (f" ({', '.join(aside)})" if aside else "")


def _summary(found: Mapping[str, Any]) -> str:
    kinds = (k for k in found if isinstance(found[k], Mapping))
    parts: Sequence[str] = [
        f"{kind}: median {found[kind]['median_s']:.2f} s, most {found[kind]['most_s']:.2f} s"
        for kind in kinds
    ]
    return f"{found['accepted']} of {found['rows']} accepted. {'; '.join(parts)}."
