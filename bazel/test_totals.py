"""Counts the test cases of one `bazel test`.

    python3 bazel/test_totals.py EVENTS

EVENTS is what --build_event_json_file wrote. Prints one line such as
"12 passed, 0 failed, 1 skipped". Cases are those of the XML reports of this
run, cached results among them. A test that failed without a failed case to show
for it counts as one, and so does a target that could not be built.

Runs on the system's Python: the standard library only.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree
from collections.abc import Iterable

GOOD = ("PASSED", "FLAKY")


@dataclasses.dataclass(frozen=True, slots=True)
class Totals:
    """How many test cases ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def of_report(text: str) -> Totals:
    """Counts the cases of one JUnit XML report."""
    total = Totals()
    for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            total += Totals(failed=1)
        elif case.find("skipped") is not None:
            total += Totals(skipped=1)
        else:
            total += Totals(passed=1)
    return total


def of_result(result: dict) -> Totals:
    """Counts the cases of one run of one target, from its testResult event."""
    good = result.get("status") in GOOD
    total = Totals()
    for output in result.get("testActionOutput", []):
        path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path))
        if output["name"] != "test.xml" or not path.exists():
            continue
        try:
            total += of_report(path.read_text(encoding="utf-8"))
        except xml.etree.ElementTree.ParseError:
            # A test that was killed while it wrote its report.
            good = False
    if not good and not total.failed:
        total += Totals(failed=1)
    return total


def is_broken(event: dict) -> bool:
    """Whether a targetCompleted event says that the target could not be built."""
    if "aborted" in event:
        return event["aborted"].get("reason") != "SKIPPED"
    return not event.get("completed", {}).get("success")


def of_events(lines: Iterable[str]) -> Totals:
    """Counts the cases of all targets; of several attempts only the last."""
    results: dict[tuple, Totals] = {}
    broken = set()
    for line in lines:
        event = json.loads(line)
        name, where = next(iter(event["id"].items()))
        if name == "testResult":
            run = (where["label"], where.get("run"), where.get("shard"))
            results[run] = of_result(event.get("testResult", {}))
        elif name == "targetCompleted" and is_broken(event):
            broken.add(where["label"])
    return sum(results.values(), Totals(failed=len(broken)))


def main() -> int:
    """Prints the line for the file named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("events", type=pathlib.Path)
    args = parser.parse_args()
    with args.events.open(encoding="utf-8") as lines:
        print(of_events(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
