"""A stored job: its text, and its state as plain data and as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from search.cli.job_file import Job
from search.cli.tables import columns, filled
from search.core import quantity
from search.core.settings import Settings, settings
from search.core.stored import Keeper
from search.core.stored_job import StoredJob
from search.loop.retold import ending, fastest, told
from search.loop.rounds import JobBudget, Share

TITLES = ("kernel", "target", "run", "priority", "weight", "rounds", "evaluations", "best", "state")
OF_NETWORK = (
    *("kernel", "target", "calls", "before", "best", "of a call", "rounds", "evaluations", "state"),
)
NOT_BEGUN, OPEN = "not begun", "open"


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The contents of a job."""

    budget: JobBudget
    memory: bool
    lessons: bool
    held_out: int | None
    searches: tuple[tuple[Settings, Share], ...]


def job_text(job: Job, chosen: Sequence[Settings]) -> str:
    """The stored text of a job, which `job_plan` reads. chosen: the settings of its searches."""
    shares = [asdict(each.share) for each in job.searches]
    return json.dumps(
        {
            "budget": asdict(job.budget),
            "memory": job.memory,
            "lessons": job.lessons,
            "held_out": job.held_out,
            "searches": [
                {"settings": json.loads(one.to_json()), "share": share}
                for one, share in zip(chosen, shares, strict=True)
            ],
        }
    )


def job_plan(text: str) -> JobPlan:
    """The contents of a stored job's text."""
    table = json.loads(text)
    searches = tuple(
        (settings(json.dumps(each["settings"])), Share(**each["share"]))
        for each in table["searches"]
    )
    return JobPlan(
        JobBudget(**table["budget"]), table["memory"], table["lessons"], table["held_out"], searches
    )


def job_table(stored: StoredJob, store: Keeper) -> dict[str, Any]:
    """The state of a job: its budget and each search, in the order of its file."""
    plan = job_plan(stored.text)
    runs = {each.search: each.run for each in stored.rounds if each.run}
    last = {each.search: each for each in stored.rounds}
    counts = Counter(each.search for each in stored.rounds)
    rows = []
    for number, (chosen, share) in enumerate(plan.searches):
        row = {
            "kernel": chosen.kernel,
            "target": chosen.target,
            "run": runs.get(number),
            **asdict(share),
            "rounds": counts[number],
            "made": 0,
            "taken_s": 0.0,
            "best_us": None,
            "state": NOT_BEGUN,
        }
        if number in runs:
            record = store.load(runs[number])
            outcomes = told(record)
            best = fastest(outcomes)
            row["made"], row["taken_s"] = len(outcomes), round(record.seconds, 3)
            row["best_us"] = best[1].us if best else None
            row["state"] = ending(record)[1] if last[number].over else OPEN
        rows.append(row)
    return {
        "job": stored.job,
        "budget": asdict(plan.budget),
        "rounds": len(stored.rounds),
        "evaluations": sum(row["made"] for row in rows),
        "seconds": round(sum(row["taken_s"] for row in rows), 3),
        "searches": rows,
    }


def job_words(table: Mapping[str, Any], width: int | None = None) -> str:
    """The state of a job, for a person."""
    if any(row["network"] for row in table["searches"]):
        return _network_words(table, width)
    cells = [
        (
            row["kernel"],
            row["target"],
            row["run"] or quantity.NONE,
            str(row["priority"]),
            f"{row['weight']:g}",
            str(row["rounds"]),
            str(row["made"]) + (f" of {row['evaluations']}" if row["evaluations"] else ""),
            quantity.time(row["best_us"]),
            row["state"],
        )
        for row in table["searches"]
    ]
    return columns([TITLES, *cells], "<<<>>>>><", width) + filled(job_sentence(table), width)


def _network_words(table: Mapping[str, Any], width: int | None) -> str:
    """The state of the searches for networks' kernels, those with the most time of a call first."""
    rows = table["searches"]
    times = [row["calls"] * (row["best_us"] or row["estimate_us"]) for row in rows]
    cells = []
    for row, us in sorted(zip(rows, times, strict=True), key=lambda each: -each[1]):
        whole = sum(t for r, t in zip(rows, times, strict=True) if r["network"] == row["network"])
        cells.append(
            (
                row["kernel"],
                row["target"],
                str(row["calls"]),
                quantity.time(row["estimate_us"]) + ("" if row["timed"] else " estimated"),
                quantity.time(row["best_us"]),
                quantity.share(us / whole if whole else 0.0),
                str(row["rounds"]),
                str(row["made"]),
                row["state"],
            )
        )
    return columns([OF_NETWORK, *cells], "<<>>>>>><", width) + filled(job_sentence(table), width)


def job_sentence(table: Mapping[str, Any]) -> str:
    """A job in one line."""
    most, rows = table["budget"]["evaluations"], table["searches"]
    begun = sum(row["run"] is not None for row in rows)
    made = (
        f"{table['evaluations']} of {quantity.count(most, 'evaluation')}"
        if most
        else quantity.count(table["evaluations"], "evaluation")
    )
    allowed = table["budget"]["seconds"]
    took = quantity.duration(table["seconds"])
    took += f" of {quantity.duration(allowed)}" if allowed else ""
    return (
        f"job {table['job']}: {made} in {table['rounds']} rounds of {begun} of {len(rows)} searches, "
        f"which took {took}"
    )
