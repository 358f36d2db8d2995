"""What the last line of a test run must say."""

import json

import pytest

from bazel import test_totals
from bazel.test_totals import Totals

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="s">
  <testcase name="good"/>
  <testcase name="bad"><failure message="m">text</failure></testcase>
  <testcase name="broken"><error message="m"/></testcase>
  <testcase name="no device"><skipped message="m"/></testcase>
</testsuite></testsuites>
"""


def result(label, status, xml_path=None, **where):
    outputs = [{"name": "test.log", "uri": "file:///gone/test.log"}]
    if xml_path:
        outputs.append({"name": "test.xml", "uri": xml_path.as_uri()})
    return {
        "id": {"testResult": {"label": label, "run": 1, "shard": 1, **where}},
        "testResult": {"status": status, "testActionOutput": outputs},
    }


def completed(label, **what):
    return {"id": {"targetCompleted": {"label": label}}, **what}


def count(*events):
    return test_totals.of_events(json.dumps(event) for event in events)


@pytest.fixture
def report(tmp_path):
    def write(text, name="test.xml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_each_case_counts_once():
    assert test_totals.of_report(REPORT) == Totals(passed=1, failed=2, skipped=1)


def test_the_line_reads_as_promised():
    assert str(Totals(3, 0, 1)) == "3 passed, 0 failed, 1 skipped"


def test_runs_and_shards_add_up(report):
    path = report("<testsuite><testcase name='a'/></testsuite>")
    events = [result("//a", "PASSED", path, shard=1), result("//a", "PASSED", path, shard=2)]
    assert count(*events) == Totals(passed=2)


def test_the_last_attempt_counts(report):
    first = report(REPORT, "first attempt.xml")
    second = report("<testsuite><testcase name='a'/></testsuite>", "second.xml")
    events = [
        result("//a", "FAILED", first, attempt=1),
        result("//a", "PASSED", second, attempt=2),
    ]
    assert count(*events) == Totals(passed=1)


def test_failure_without_a_report_counts():
    assert count(result("//a", "TIMEOUT")) == Totals(failed=1)


def test_failure_with_a_good_report_counts(report):
    path = report("<testsuite><testcase name='a'/></testsuite>")
    assert count(result("//a", "FAILED", path)) == Totals(passed=1, failed=1)


def test_failure_with_half_a_report_counts(report):
    assert count(result("//a", "FAILED", report(REPORT[:80]))) == Totals(failed=1)


def test_failed_case_is_not_counted_twice(report):
    path = report("<testsuite><testcase name='a'><error/></testcase></testsuite>")
    events = [completed("//a", completed={"success": True}), result("//a", "FAILED", path)]
    assert count(*events) == Totals(failed=1)


@pytest.mark.parametrize(
    "what, failed",
    [
        ({"completed": {"success": True}}, 0),
        ({"completed": {"failureDetail": {"message": "gcc failed"}}}, 1),
        ({"aborted": {"reason": "ANALYSIS_FAILURE"}}, 1),
        ({"aborted": {"reason": "SKIPPED"}}, 0),
    ],
)
def test_target_that_cannot_be_built_counts(what, failed):
    assert count(completed("//a", **what)) == Totals(failed=failed)
