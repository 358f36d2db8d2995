"""Displays say what happened: starts, gains, failures and ends, each with what it is about."""

import io
import re
from dataclasses import replace

import pytest

from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure, Timed
from search.core.events import Asked, Improved, Started, Stopped, Told
from search.core.settings import Settings
from search.display.display import Lines, display, short, wrapped

SETTINGS = Settings("rows", "spec", "chip", ("tool",), {"M": 64}, evaluations=3)
FIRST = Candidate("f", "schedule(k)\ntile(m, size=32)\n", "chip", "tool", origin=Origin("first"))
CHILD = Candidate(
    "f", "schedule(k)\ntile(m, size=64)\n", "chip", "tool", origin=Origin("mutate", (FIRST.key,))
)
OTHER = Candidate(
    "f", "schedule(k)\ntile(m, size=8)\n", "chip", "tool", origin=Origin("mutate", (FIRST.key,))
)
SLOW = Evaluation(20.0, "simulated", "simulator")
FAST = Evaluation(5.0, "simulated", "simulator")
HERE = {"correct_by": "simulator", "time_kind": "simulated", "toolchain": "tool 1"}
WRONG = Failure("check", "wrong", "output `y` is off at [3]\nand so on")


def events(replayed=False):
    return [
        Started("rows-chip-1", SETTINGS, 4.0, {"here": HERE}),
        Asked(0, 0, FIRST),
        Told(0, 0, FIRST, SLOW, SLOW, 0.1, replayed),
        Improved(0, FIRST, SLOW, 1.0, replayed),
        Asked(1, 1, CHILD),
        Asked(2, 1, OTHER),
        Told(1, 1, CHILD, FAST, FAST, 0.2, replayed),
        Improved(1, CHILD, FAST, 4.0, replayed),
        Told(2, 1, OTHER, WRONG, FAST, 0.3, replayed),
        Stopped("3 evaluations were asked for and made", 3, 2.0),
    ]


def said(made, stream, happened):
    with made:
        made.begin(1, 2, "rows on chip")
        for event in happened:
            made.on_event(event)
    return stream.getvalue()


def test_lines_say_starts_gains_failures_and_ends():
    stream = io.StringIO()
    assert said(display(stream, quiet=False), stream, events()).splitlines() == [
        "[1/2] rows on chip",
        "  run rows-chip-1 starts: M=64; roofline 4.00 µs computed for chip",
        "  results: correct by simulator, times simulated for chip, with tool 1",
        "  #0 20.0 µs simulated, correct by simulator, 20% of the roofline: the autoschedule",
        "  #1 5.00 µs simulated, correct by simulator, 4.00× over the first, "
        "80% of the roofline: tile(m): size 32 → 64",
        "  #2 failed at check by simulator: output `y` is off at [3]",
        "  stopped after 2 s: 3 evaluations were asked for and made; 3 evaluations, "
        "failures: 1 at check",
    ]


@pytest.mark.parametrize(("count", "told"), [(1, "1 shape only"), (2, "2 shapes only")])
def test_a_line_says_at_how_many_shapes_a_candidate_works(count, told):
    partly = replace(SLOW, times=tuple(Timed({"M": 64 << i}, 1.0, 9.0) for i in range(count)))
    failed = Failure("verify", "refused", "at M=9: too large", partly=partly)
    stream = io.StringIO()
    happened = [*events()[:1], Asked(1, 1, CHILD), Told(1, 1, CHILD, failed, SLOW, 0.2, False)]
    assert f"  #1 works at {told}: at M=9: too large" in said(
        display(stream, quiet=False), stream, happened
    )


def test_lines_do_not_repeat_what_an_earlier_session_said():
    stream = io.StringIO()
    lines = said(Lines(stream), stream, events(replayed=True)).splitlines()
    assert len(lines) == 4
    assert "3 of them known from before" in lines[-1]


def test_a_stream_that_is_no_terminal_gets_plain_lines():
    assert isinstance(display(io.StringIO(), quiet=False), Lines)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_that_nobody_watches_gets_plain_lines():
    assert isinstance(display(Terminal(), quiet=True), Lines)


@pytest.fixture
def frame(monkeypatch):
    """The text of a live display's panel after some events."""
    monkeypatch.setenv("TERM", "xterm")

    def drawn(happened, width=100):
        monkeypatch.setenv("COLUMNS", str(width))
        from search.display.live import Live

        stream = Terminal()
        live = Live(stream)
        live.begin(1, 2, "rows on chip")
        for event in happened:
            live.on_event(event)
        live.console.print(live._panel())
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())

    return drawn


def test_a_live_panel_shows_progress_times_trials_and_failures(frame):
    text = frame(events()[:7])
    assert "rows on chip  (1 of 2)" in text and "2/3" in text
    assert re.search(r"best +20.0 µs +simulated, correct by simulator", text)
    assert re.search(r"first +20.0 µs +simulated, ", text)
    assert re.search(r"roofline +4.00 µs +computed, 20% reached", text)
    assert re.search(r"#2 +mutate +tile\(m\): size 32 → 8", text) and "#1 " not in text
    assert "no failures" in text


@pytest.mark.parametrize("width", (60, 80, 100, 120))
def test_a_live_panel_shows_an_operator_whole_however_long_its_edits_are(frame, width):
    lines = "".join(f"tile(index_{n}, size={n + 2})\n" for n in range(40))
    origin = Origin("crossover", (FIRST.key,))
    long = Candidate("f", f"schedule(k)\n{lines}", "chip", "tool", origin=origin)
    text = frame([*events()[:4], Asked(12345, 1, long)], width)
    assert re.search(r"#12345 +crossover +\S.*…", text)


def test_a_live_panel_counts_failures_by_stage_with_the_last_reason(frame):
    text = frame(events()[:9])
    assert "failed at check 1; last: check by simulator: output `y` is off at [3]" in text


@pytest.mark.parametrize("reason", ["", "\n", "\n\nno words"])
def test_a_failure_without_a_reason_is_shown(reason, frame):
    happened = events()
    happened[8] = Told(2, 1, OTHER, Failure("check", "crash", reason), FAST, 0.3)
    said_of_it = reason.strip() or "no reason was given"
    assert f"last: check by simulator: {said_of_it}" in frame(happened[:9])
    stream = io.StringIO()
    text = said(display(stream, quiet=False), stream, happened)
    assert f"#2 failed at check by simulator: {said_of_it}\n" in text


def test_a_live_panel_before_a_run_has_started_says_what_it_waits_for(frame):
    assert "starting workers" in frame([])


def test_an_ended_run_leaves_a_line(frame):
    text = frame(events())
    line = "rows on chip  (1 of 2)  20.0 µs -> 5.00 µs simulated, correct by simulator  4.00×, 80%"
    assert line in " ".join(text.split("\n"))


def test_a_long_text_is_cut_to_a_line():
    assert short("a\nb") == "a"
    assert short("at 3:1:\n  x = y\n  ^\nunknown y") == "at 3:1: unknown y"
    assert short("") == ""
    assert len(short("x" * 300)) == 100 and short("x" * 300).endswith("...")


def test_a_reason_has_as_many_lines_as_it_needs_up_to_a_few():
    reason = "failed at emit: " + "there is no room for it " * 8
    lines = wrapped(reason).splitlines()
    assert 1 < len(lines) < 5 and all(len(line) <= 100 for line in lines)
    assert " ".join(line.strip() for line in lines) == reason.strip()
    long = wrapped("word " * 400).splitlines()
    assert len(long) == 5 and long[-1].endswith(" ...")
