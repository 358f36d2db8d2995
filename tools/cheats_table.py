"""Tables of cheats: those that the evaluator judged on a device, and those that others
published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tools.markdown import line

# What the cheats of a group exploit.
_KINDS = {
    1: "memory and words that no kernel has",
    2: "Python that no kernel has",
    5: "shapes and seeds that are known",
    6: "values that are rare",
    7: "errors that are small",
    9: "inputs that are changed",
    10: "work that is not done",
}


def cheats(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, how many cases of each kind are as expected, and each that is
    not."""
    rows, said = result["rows"], result["summary"]
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    clocks = result["clocks_mhz"]
    bad, good = said["cheat"], said["honest"]
    parts = [
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver {result['driver']}, "
        f"{versions}, SM clock {clocks['sm']} MHz, secret `{result['secret']}`, {result['wall_s']} s. "
        f"**{bad['as_expected']} of {bad['cases']} cheats refused for their reason, "
        f"{good['as_expected']} of {good['cases']} honest oddities accepted.**"
    ]
    parts.append(_groups(rows))
    other = [row for row in rows if not row["as_expected"]]
    if other:
        parts.append(_others(other))
    parts += [
        f"{what}: {', '.join(f'`{name}`' for name in names)}."
        for what, names in (
            ("Left out, as they edit what the target's source does not have", result["left_out"]),
            ("Not reached", result["not_reached"]),
        )
        if names
    ]
    return parts


def published_cheats(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, and the verdict on each cheat that others published."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    rows = result["rows"]
    head = ("cheat", "from", "what it does", "refused as", "reason", "as expected")
    lines = [line(head), line(["---"] * len(head))]
    for row in rows:
        reason = " ".join(row["reason"].split())[:160].replace("|", "\\|")
        expected = "yes" if row["as_expected"] else "**no**"
        lines.append(
            line([row["name"], row["collection"], row["why"], row["kind"], reason, expected])
        )
    right = sum(row["as_expected"] for row in rows)
    return [
        f"`{result['command']}`, {result['date']}, {result['device']}, {versions}. **{right} of {len(rows)} "
        "refused as expected.**",
        "\n".join(lines),
    ]


def _groups(rows: list[Mapping[str, Any]]) -> str:
    lines = [
        line(["language", "cases", "how many", "as expected"]),
        line(["---"] * 2 + ["---:"] * 2),
    ]
    of = [
        (
            r["language"],
            f"cheats: {_KINDS[r['group']]}" if r["is"] == "cheat" else "honest oddities",
        )
        for r in rows
    ]
    every = Counter(of)
    right = Counter(key for key, r in zip(of, rows, strict=True) if r["as_expected"])
    lines += [line([*key, str(every[key]), str(right[key])]) for key in sorted(every)]
    return "\n".join(lines)


def _others(rows: list[Mapping[str, Any]]) -> str:
    lines = [line(["is", "case", "language", "expected", "found"]), line(["---"] * 5)]
    for row in rows:
        refused = row["verdict"] == "refused"
        found = f"refused at {row['stage']}: {row['reason'][:160]}" if refused else "accepted"
        expected = row["expected"].replace("|", "\\|")
        lines.append(line([row["is"], row["name"], row["language"], expected, found]))
    return "\n".join(lines)
