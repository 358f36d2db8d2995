"""The tables of a model of scale: real runs with the model's predictions, and larger modelled
runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line

_MEASURED = (
    "workers",
    "evaluations a second, measured",
    "modelled",
    "error",
    "slots busy, measured",
    "modelled",
)
_MODELLED = (
    "case, modelled",
    "searches",
    "slots",
    "devices",
    "evaluations a second",
    "slots busy",
    "devices measuring",
    "waiting, s",
    "lost",
    "kernels an hour",
    "cost of a kernel",
)


def scale(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, the real runs if any, the modelled runs and the prices."""
    parts = [
        f"`{result['command']}`, {result['date']}, {result['machine']}, {_versions(result)}.",
    ]
    if result.get("runs"):
        parts += [_runs(result), _rows([_run(row) for row in result["runs"]], _MEASURED, 0)]
    if sources := result.get("sources"):
        parts.append("\n".join(f"- {what}: {source}" for what, source in sources.items()))
    prices = result["prices"]
    parts.append(
        f"All of the next table is modelled. Prices are {prices['kind']}: {prices['core_hour']:g} for an "
        f"hour of a core, {prices['device_hour']:g} for one of a device."
    )
    parts.append(_rows([_row(row) for row in result["rows"]], _MODELLED, 1))
    return parts


def _versions(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {number}" for name, number in result["versions"].items())


def _runs(result: Mapping[str, Any]) -> str:
    searched, calibration = result["searched"], result["calibration"]
    sizes = "x".join(str(size) for size in searched["sizes"].values())
    worst = max(abs(row["error"]) for row in result["runs"])
    return (
        f"Searches of `{searched['kernel']}` at {sizes} on `{searched['target']}`, "
        f"{searched['evaluations']} evaluations, on {calibration['cores']} cores that the workers and the "
        f"search share. The model's figures are from the run on one worker and from its candidates on two workers "
        f"without a search; the largest error is {100 * worst:.1f}%."
    )


def _run(row: Mapping[str, Any]) -> list[str]:
    modelled = row["modelled"]
    return [
        str(row["workers"]),
        f"{row['throughput']:.2f}",
        f"{modelled['throughput']:.2f}",
        f"{100 * row['error']:+.1f}%",
        _share(row["busy"]),
        _share(modelled["busy"]),
    ]


def _row(row: Mapping[str, Any]) -> list[str]:
    return [
        row["name"],
        str(row["searches"]),
        str(row["slots"]),
        str(row["devices"] or "-"),
        f"{row['throughput']:.2f}",
        _share(row["busy"]),
        _share(row["measuring"]) if row["devices"] else "-",
        cut(row["waited"]),
        f"{row['losses']:g}",
        f"{row['kernels_an_hour']:.0f}",
        f"{row['cost']:.4f}",
    ]


def _share(part: float) -> str:
    return f"{100 * part:.1f}%"


def _rows(rows: Sequence[Sequence[str]], head: Sequence[str], words: int) -> str:
    """Returns a table. words: the number of columns that contain text."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join([line(head), line(rule), *map(line, rows)])
