"""The command as a user runs it: in a separate process, judged by its output and its files."""

import html.parser
import json
import os
import signal

import pytest

from search.store.store import Store
from testing.cli.place import SCALE, Place

FIELDS = [
    "run",
    "kernel",
    "target",
    "backend",
    "backends",
    "shape",
    "evaluations",
    "failures",
    "slow",
    "failed",
    "correct_by",
    "time_kind",
    "device",
    "toolchain",
    "first_us",
    "best_us",
    "plain_us",
    "roofline_us",
    "stopped_because",
    "record",
    "out",
    "schedule",
    "source",
    "variant",
    "shapes",
    "dispatch",
    "held_out",
    "operators",
]

ROWS = ("--kernel=rows.kir", "--policy=evolutionary")  # its children are found quickly


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def test_a_run_ends_with_a_table_on_stdout_and_progress_on_stderr(place):
    code, out, err = place.run("--target=null", "--kernel=scale.kir", "--evaluations=6")
    assert code == 0
    head, rule, row, how = out.splitlines()
    assert (
        head.split()
        == (
            "kernel target first best over first over plain roofline correct by time stopped because"
        ).split()
    )
    assert row.startswith("scale   null")
    assert "emulator" in row and "modelled" in row
    assert how == "Correct by emulator, times modelled for null, with null 1."
    assert row.endswith("6 evaluations were asked for and made")
    assert "[1/1] scale on null" in err and "#0 " in err and "the autoschedule" in err


def test_json_is_one_object_with_the_promised_fields_in_their_order(place):
    found = place.evolve("--kernel=scale.kir", "--evaluations=6", "--shape=K=80")
    assert list(found) == ["runs"]
    (run,) = found["runs"]
    assert list(run) == FIELDS
    assert run["run"] == "scale-null-1"
    assert run["shape"] == {"M": 64, "K": 80}
    assert run["evaluations"] == 6
    assert (run["correct_by"], run["time_kind"]) == ("emulator", "modelled")
    assert 0 < run["roofline_us"] and 0 < run["best_us"] <= run["first_us"]
    assert run["plain_us"] > 0 and run["record"] is None and run["out"] is None
    assert run["schedule"].startswith("schedule(scale)") and "scale" in run["source"]
    assert run["variant"] is None


def test_a_suite_is_every_kernel_for_every_target(place):
    both = ("--kernel=scale.kir", "--kernel=rows.kir", "--evaluations=3")
    assert [r["kernel"] for r in place.evolve(*both)["runs"]] == ["scale", "rows"]


def test_the_same_seed_gives_the_same_result_with_any_number_of_workers(place):
    words = (*ROWS, "--evaluations=12", "--seed=3", "--secret=known")
    one = place.evolve(*words, "--store=one.db")
    two = place.evolve(*words, "--store=two.db", "--workers=2")
    place.evolve(*ROWS, "--evaluations=12", "--seed=4", "--store=other.db")
    assert one == two
    assert place.tried("one.db") == place.tried("two.db")
    assert set(place.tried("one.db")) != set(place.tried("other.db"))


def test_what_was_found_out_before_is_taken_from_the_store(place):
    words = (*ROWS, "--evaluations=4", "--json", "--target=null")
    place.run_here(*words)
    began = place.evaluated("../home/.local/share/speciate/store.db")
    place.run_here(*words)
    assert place.evaluated("../home/.local/share/speciate/store.db") == 2 * began == 8


def test_a_run_killed_in_the_middle_resumes_to_the_result_of_one_that_was_not(place):
    words = (*ROWS, "--evaluations=20", "--seed=1")
    whole = place.evolve(*words, "--store=whole.db")
    dies = place.signalled(signal.SIGKILL, 10)
    code, _, _ = place.run("--target=null", *words, "--store=killed.db", **dies)
    assert code == -signal.SIGKILL
    assert place.evaluated("killed.db") == 10
    code, out, err = place.run_here("--resume=rows-null-1", "--store=killed.db", "--json")
    assert code == 0 and "goes on" in err
    assert json.loads(out) == whole


def test_without_a_database_package_the_error_names_it_and_what_it_is_for(place):
    code, out, err = place.run(*GOOD, **place.without("sqlalchemy", "rich"))
    refused(place, code, out, err, ["`sqlalchemy`", "keeps runs in a store", "--no-store"])


def test_without_a_store_a_search_finds_the_same_and_leaves_nothing(place):
    words = (*ROWS, "--evaluations=8", "--seed=3")
    kept = place.evolve(*words, "--store=one.db")
    place.given = place.files()
    found = place.evolve(*words, "--no-store", **place.without("sqlalchemy", "rich"))
    assert found == kept
    assert place.new_files() == []


def test_an_interrupt_stores_everything_and_says_how_to_go_on(place):
    words = (*ROWS, "--kernel=scale.kir", "--evaluations=300", "--store=runs.db")
    stops = place.signalled(signal.SIGINT, 17)  # the first generation of 8 is complete by then
    code, out, err = place.run("--target=null", *words, "--json", **stops)
    assert code == 130
    (run,) = json.loads(out)["runs"]
    assert "interrupted" in run["stopped_because"] and run["evaluations"] >= 8
    assert "python3 -m search.evolve --resume=rows-null-1 --store=runs.db" in err
    assert "not begun: scale on null" in err
    wider = ("--resume=rows-null-1", "--store=runs.db", f"--evaluations={run['evaluations']}")
    code, out, _ = place.run_here(*wider, "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["best_us"] == run["best_us"]


def test_a_resumed_run_can_be_given_more_evaluations(place):
    place.evolve(*ROWS, "--evaluations=6", "--store=runs.db")
    wider = ("--resume=rows-null-1", "--store=runs.db", "--evaluations=12")
    code, out, _ = place.run_here(*wider, "--json")
    longer = place.evolve(*ROWS, "--evaluations=12", "--store=other.db")
    assert code == 0 and json.loads(out) == longer
    assert list(json.loads(out)["runs"][0]["shape"]) == ["M", "K", "N"]


def test_targets_are_listed_for_a_person_and_for_a_program(place):
    code, out, _ = place.run_here("--list-targets")
    assert code == 0
    assert out.splitlines()[0].split() == "target backend correct by time with what it is".split()
    code, listed, _ = place.run_here("--list-targets", "--json")
    rows = json.loads(listed)["targets"]
    assert code == 0 and rows
    assert set(rows[0]) == {
        "target",
        "backend",
        "title",
        "correct_by",
        "time_kind",
        "device",
        "toolchain",
        "why",
    }
    assert all(row["target"] in out for row in rows)
    assert place.new_files() == []


def test_help_ends_with_two_examples(place):
    code, out, _ = place.run("--help")
    examples = out.partition("\nexamples:\n")[2]
    assert code == 0 and examples.count("  evolve --target=") == 2


def test_a_winner_is_promoted_into_the_checkout_and_kept_while_it_is_the_best(place):
    tree = place.folder / "tree"
    tree.mkdir()
    (tree / "WORKSPACE").touch()
    words = ("--kernel=rows.kir", "--evaluations=8", "--promote")
    found = place.evolve(*words, BUILD_WORKSPACE_DIRECTORY=str(tree))
    assert found["runs"][0]["record"] == "kernels_generated/rows/null"
    folder = tree / "kernels_generated" / "rows"
    assert {p.name for p in folder.iterdir()} == {"BUILD.bazel", "null", "spec.kir"}
    names = {p.name for p in (folder / "null").iterdir()}
    assert {"record.toml", "schedule.sched"} < names and len(names) == 3
    again = place.evolve(*words, BUILD_WORKSPACE_DIRECTORY=str(tree))
    assert again["runs"][0]["record"] is None


def test_a_backend_for_tests_promotes_nothing_unless_told_to(place):
    (place.work / "WORKSPACE").touch()
    words = ("--kernel=scale.kir", "--evaluations=2")
    found = place.evolve(*words, BUILD_WORKSPACE_DIRECTORY=str(place.work))
    assert found["runs"][0]["record"] is None
    assert not (place.work / "kernels_generated").exists()


def test_the_report_and_the_timeline_are_written_where_the_user_is(place):
    place.evolve("--kernel=rows.kir", "--evaluations=4", "--report=page.html", "--trace=t.json")
    text = (place.work / "page.html").read_text()
    html.parser.HTMLParser().feed(text)
    assert "rows on null" in text and "kernel.txt" in text and "--report=page.html" in text
    assert json.loads((place.work / "t.json").read_text())["traceEvents"]


def machine_file(place, text):
    """A target file made from the null target's by a text replacement."""
    import backends

    file = os.path.join(os.path.dirname(backends.__file__), "targets", "null.toml")
    with open(file, encoding="utf-8") as held:
        (place.work / "own.toml").write_text(text(held.read()))
    place.given = place.files()


def test_a_target_of_ones_own_is_a_file(place):
    machine_file(place, lambda text: text.replace('name = "null"', 'name = "own"'))
    found = place.evolve("--kernel=scale.kir", "--evaluations=2", "--target=own.toml")
    assert [r["target"] for r in found["runs"]] == ["null", "own"]


def test_a_run_for_a_target_of_ones_own_is_shown_with_its_file(place):
    machine_file(place, lambda text: text.replace('name = "null"', 'name = "own"'))
    words = ("--target=own.toml", "--kernel=scale.kir", "--evaluations=1", "--store=runs.db")
    assert place.run_here(*words)[0] == 0
    code, out, err = place.run_here("--show=scale-own-1", "--store=runs.db")
    assert (code, out) == (2, "") and "--target: run `scale-own-1` is for target `own`" in err
    assert "--target=FILE.toml" in err
    code, out, err = place.run_here("--show=scale-own-1", "--store=runs.db", "--target=own.toml")
    assert code == 0 and "scale-own-1" in out, err


GOOD = ("--target=null", "--kernel=scale.kir", "--evaluations=2")
BAD = {
    "no target": (("--kernel=scale.kir",), ["--target", "--list-targets"]),
    "unknown target": (("--target=nul",), ["--target: there is no target `nul`", "`null`?"]),
    "unknown kernel": (
        ("--target=null", "--kernel=sofmax"),
        ["--kernel", "no kernel `sofmax`", "did you mean `softmax`?"],
    ),
    "kernel file not there": (
        ("--target=null", "--kernel=no/none.kir"),
        ["--kernel", "no/none.kir` cannot be read"],
    ),
    "kernel file with a slip in its name": (
        ("--target=null", "--kernel=./scal.kir"),
        ["scal.kir` cannot be read", "`scale.kir`?"],
    ),
    "unknown backend": ((*GOOD, "--backend=nul"), ["--backend", "`nul`", "null"]),
    "unknown policy": ((*GOOD, "--policy=gredy"), ["--policy", "`gredy`", "greedy"]),
    "unknown argument": ((*GOOD, "--evaluation=3"), ["--evaluation", "`--evaluations`?"]),
    "stray word": ((*GOOD, "softmax"), ["`softmax` is not understood"]),
    "zero evaluations": (("--target=null", "--evaluations=0"), ["--evaluations", "from 1"]),
    "words for seconds": ((*GOOD, "--seconds=soon"), ["--seconds", "`soon`", "positive"]),
    "negative seed": ((*GOOD, "--seed=-1"), ["--seed", "`-1`", "from 0"]),
    "no workers": ((*GOOD, "--workers=0"), ["--workers", "from 1"]),
    "shape syntax": ((*GOOD, "--shape=M:3"), ["--shape", "`M:3`", "--shape=M=2048,K=512"]),
    "shape name": ((*GOOD, "--shape=Q=3"), ["--shape", "no size `Q`", "M, K"]),
    "shape zero": ((*GOOD, "--shape=M=0"), ["--shape", "`M=0`"]),
    "shape twice": ((*GOOD, "--shape=M=1,M=2"), ["--shape", "twice"]),
    "shape for many": (("--target=null", "--shape=M=3"), ["--shape", "one kernel"]),
    "unwritable store": ((*GOOD, "--store=scale.kir/runs.db"), ["scale.kir", "--store"]),
    "no such database": ((*GOOD, "--store=nosuch://x"), ["nosuch", "--store"]),
    "kept and not kept": ((*GOOD, "--no-store", "--store=a.db"), ["--store", "--no-store"]),
    "resume what is not kept": (("--resume=rows-null-1", "--no-store"), ["--resume", "--no-store"]),
    "resume from nothing": (
        ("--resume=rows-null-1", "--store=no.db"),
        ["--resume", "no store", "`rows-null-1`"],
    ),
    "report nowhere": ((*GOOD, "--report=no/page.html"), ["--report", "no` does not exist"]),
    "report is a folder": ((*GOOD, "--report=."), ["--report", "is a folder"]),
    "trace of many": (("--target=null", "--trace=t.json"), ["--trace", "one"]),
    "more memory than there is": (
        ("--target=null", "--kernel=huge.kir"),
        ["kernel `scale`", "M=2000000, K=131072", "GiB of memory", "are available", "`check(...)`"],
    ),
    "a file in the place of a folder": ((*GOOD, "--out=scale.kir"), ["--out", "is a file"]),
    "nothing to overwrite": ((*GOOD, "--overwrite"), ["--overwrite", "--out"]),
    "a list of what is not kept": (("--list-runs", "--no-store"), ["--list-runs", "--no-store"]),
    "salvage what is not kept": (("--salvage=a.db", "--no-store"), ["--salvage", "--no-store"]),
    "salvage of no store": (
        ("--salvage=a.db", "--store=no.db"),
        ["--store", "no.db", "is no file"],
    ),
    "salvage into a folder": (("--salvage=.",), ["--salvage", "is a folder"]),
    "a run of no store": (("--show=x-1", "--store=no.db"), ["--show", "no store", "`x-1`"]),
    "promote nowhere": (
        (*GOOD, "--promote", "--report=page.html"),
        ["--promote", "no checkout"],
    ),
}


@pytest.mark.parametrize("words, said", BAD.values(), ids=BAD)
def test_bad_use_is_told_once_with_its_place_and_leaves_nothing(place, words, said):
    (place.work / "huge.kir").write_text(SCALE.replace("M=3, K=5", "M=2000000, K=131072"))
    place.given = place.files()
    # Not a checkout, wherever the test runs.
    code, out, err = place.run_here(*words, BUILD_WORKSPACE_DIRECTORY=str(place.folder))
    refused(place, code, out, err, said)


def refused(place, code, out, err, said):
    assert code == 2, err
    assert out == ""
    assert err.startswith("evolve: ") and err.count("evolve: ") == 1
    assert "Traceback" not in err
    for words in said:
        assert words in err
    assert "hint: " in err or "allowed: " in err
    assert place.new_files() == []


def test_a_kernel_with_a_wrong_index_is_told_with_its_line_and_a_caret(place):
    (place.work / "wrong.kir").write_text(SCALE.replace("g[k]", "g[q]"))
    place.given = place.files()
    code, out, err = place.run_here("--target=null", "--kernel=wrong.kir")
    refused(place, code, out, err, ["wrong.kir, line 3", "`q`", "^", "y[m, k] = x[m, k] * g[q]"])


def given(place, text):
    """A schedule file for the kernel `scale`."""
    (place.work / "own.sched").write_text(f"schedule(scale)\n{text}\n")
    place.given = place.files()
    return ("--target=null", "--kernel=scale.kir", "--evaluations=4", "--schedule=own.sched")


def test_a_schedule_that_does_not_fit_is_told_with_what_it_needs_and_what_there_is(place):
    words = given(place, "tile(m, size=16)\npipeline(x, stages=99)")
    said = ["own.sched, on target `null`", "bytes of `local`, the machine has 262144", "`x`"]
    refused(place, *place.run_here(*words), said)


def test_a_schedule_with_a_wrong_line_is_told_with_a_caret(place):
    said = ["own.sched", "line 2", "tile(q, size=4)", "^", "`q` is no index", "allowed: m, k"]
    refused(place, *place.run_here(*given(place, "tile(q, size=4)")), said)


def test_a_schedule_is_for_one_kernel(place):
    words = [w for w in given(place, "tile(m, size=4)") if not w.startswith("--kernel")]
    refused(place, *place.run_here(*words), ["--schedule", "one kernel"])


def test_a_search_starts_from_a_given_schedule_too(place):
    words = given(place, "tile(k, size=3)\nplace(k.outer, level=loop)")
    place.evolve(*words[1:], "--store=runs.db")
    opened = Store(str(place.work / "runs.db"))
    first = opened.load(opened.runs()[-1]).generations[0]
    opened.close()
    assert [c.origin.operator for c in first] == ["first", "plain", "given"]
    assert "tile(k, size=3)" in first[2].schedule


def test_a_kernel_without_check_sizes_is_told_to_have_some(place):
    (place.work / "bare.kir").write_text(SCALE.partition("check(")[0])
    place.given = place.files()
    code, out, err = place.run_here("--target=null", "--kernel=bare.kir")
    refused(place, code, out, err, ["`scale`", "check("])


def test_a_kernel_without_tuning_sizes_needs_a_shape(place):
    (place.work / "bare.kir").write_text(SCALE.replace("tune(M=64, K=96)\n", ""))
    place.given = place.files()
    code, out, err = place.run_here("--target=null", "--kernel=bare.kir", "--shape=M=8")
    refused(place, code, out, err, ["--shape", "size K", "--shape=K=1024"])


def test_a_target_file_with_a_missing_field_is_told_with_the_field(place):
    machine_file(place, lambda text: text.replace("grid = 16", ""))
    code, out, err = place.run_here("--target=own.toml", "--kernel=scale.kir")
    refused(place, code, out, err, ["own.toml", "`levels.grid` is missing"])


def test_an_unknown_run_is_told_with_those_that_are_known(place):
    place.evolve("--kernel=scale.kir", "--evaluations=2", "--store=runs.db")
    place.given = place.files()
    code, out, err = place.run_here("--resume=scale-null-7", "--store=runs.db")
    refused(place, code, out, err, ["no run `scale-null-7`", "scale-null-1"])


def test_a_run_that_goes_on_keeps_what_it_was_started_with(place):
    place.evolve("--kernel=scale.kir", "--evaluations=2", "--store=runs.db")
    place.given = place.files()
    code, out, err = place.run_here("--resume=scale-null-1", "--store=runs.db", "--seed=2")
    refused(place, code, out, err, ["--seed", "keeps its options"])
