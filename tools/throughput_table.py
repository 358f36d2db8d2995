"""The table of searches by candidates evaluated per second, with the time of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line

Row = Mapping[str, Any]
_HEAD = ("search", "seconds", "evaluations", "a second", "correct", "slow", "failed", "alone")
_STAGES = ("build", "check", "time", "waiting turns")  # Stages with a column of mean seconds.


def throughput(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the searches, those that found nothing, and the total."""
    rows = [r for r in result["rows"] if "evaluations" in r]
    lost = [f"- `{r['kernel']}`: {r['reason']}" for r in result["rows"] if "evaluations" not in r]
    return [p for p in (_origin(result), _rows(rows), "\n".join(lost), _all(rows)) if p]


def _origin(result: Mapping[str, Any]) -> str:
    versions = "".join(f", {n} {number}" for n, number in result.get("versions", {}).items())
    machine = f", {result['machine']}, driver {result['driver']}" if "machine" in result else ""
    return (
        f"`{result['command']}`, {result['date']}{machine}{versions}; {result['workers']} workers. Stages: mean "
        "seconds of a correct candidate. *Alone*: the share of the time in which a candidate had the device alone."
        + (
            " *Busy*: the share in which a kernel was running, by the driver."
            if any(r.get("device_busy") is not None for r in result["rows"])
            else ""
        )
    )


def _rows(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    busy = any(row.get("device_busy") is not None for row in rows)
    head = (*_HEAD, *(("busy",) if busy else ()), *_STAGES)
    lines = [line(head), line(["---"] + ["---:"] * (len(head) - 1))]
    for row in rows:
        counts = (str(row[name]) for name in ("correct", "slow", "failed"))
        stages = row["seconds_each"]["correct"]
        cells = [f"`{row['kernel']}`", f"{row['seconds']:.1f}", str(row["evaluations"])]
        cells += [cut(row["per_second"]), *counts, _percent(row["alone_share"])]
        cells += [_percent(row.get("device_busy"))] if busy else []
        lines.append(line([*cells, *(cut(stages.get(name)) for name in _STAGES)]))
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{cut(100 * share, 0)}%"


def _all(rows: Sequence[Row]) -> str:
    evaluations, seconds = (sum(r[name] for r in rows) for name in ("evaluations", "seconds"))
    if not seconds:
        return ""
    return (
        f"All: {evaluations} evaluations in {seconds:.1f} s, {cut(evaluations / seconds)} a second."
    )
