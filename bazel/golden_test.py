"""What golden texts must do."""

import pytest

from bazel.golden import Golden, Mismatch, golden_for


def test_equal_text_passes(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    Golden(tmp_path, None, "renew")("a.txt", "one\n")


def test_difference_shows_both_texts_and_the_command(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(Mismatch) as caught:
        Golden(tmp_path, None, "make new")("a.txt", "two\n")
    report = str(caught.value)
    assert "-one" in report and "+two" in report
    assert report.endswith("If the new text is right: make new")


def test_missing_file_is_a_mismatch(tmp_path):
    with pytest.raises(Mismatch, match="a.txt does not exist"):
        Golden(tmp_path, None, "renew")("a.txt", "two\n")


def test_missing_newline_at_the_end_is_a_mismatch(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises(Mismatch):
        Golden(tmp_path, None, "renew")("a.txt", "one")


def test_renewing_writes_the_other_tree_only(tmp_path):
    seen, written = tmp_path / "seen", tmp_path / "written"
    Golden(seen, written, "renew")("deep/a.txt", "two\n")
    assert (written / "deep/a.txt").read_text() == "two\n"
    assert not seen.exists()


def test_plain_pytest_renews_where_it_reads(tmp_path):
    golden = golden_for("ir/a_test.py", tmp_path, True, {})
    assert golden.written == tmp_path
    assert golden.renew == "python3 -m pytest ir/a_test.py --update-golden"


def test_bazel_run_renews_the_real_tree(tmp_path):
    environ = {"TEST_TARGET": "//ir:a_test", "BUILD_WORKSPACE_DIRECTORY": "/real"}
    golden = golden_for("ir/a_test.py", tmp_path, True, environ)
    assert str(golden.written) == "/real"
    assert golden.renew == "./bazelw run //ir:a_test -- --update-golden"


def test_bazel_runs_the_target_of_the_file_and_not_that_of_its_folder(tmp_path):
    def renew(file):
        return golden_for(file, tmp_path, False, {"TEST_TARGET": "//ir:lower/all_tests"}).renew

    assert renew("ir/lower/a_test.py") == "./bazelw run //ir:lower/a_test -- --update-golden"
    assert renew("other/a_test.py") == "./bazelw run //ir:lower/all_tests -- --update-golden"


def test_bazel_test_refuses_to_renew(tmp_path):
    with pytest.raises(ValueError, match="use: ./bazelw run //ir:a_test -- --update-golden"):
        golden_for("ir/a_test.py", tmp_path, True, {"TEST_TARGET": "//ir:a_test"})


def test_nothing_is_written_unless_asked(tmp_path):
    environ = {"BUILD_WORKSPACE_DIRECTORY": "/real"}
    assert golden_for("ir/a_test.py", tmp_path, False, environ).written is None


def test_fixture_compares(golden):
    with pytest.raises(Mismatch):
        golden("bazel/golden/no_such_file.txt", "text")
