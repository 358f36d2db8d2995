"""Scripted answers are read from files of three kinds."""

import pytest

from testing.model_server.scripted import Scripted, library, scripted


def test_a_text_is_said_as_it_stands(tmp_path):
    (tmp_path / "edit.md").write_text("A text.\n\n+++\nwhich is part of it\n")
    assert scripted(tmp_path / "edit.md").text == "A text.\n\n+++\nwhich is part of it\n"


def test_a_text_can_have_a_table_before_it(tmp_path):
    (tmp_path / "edit.md").write_text('+++\nwords = ["repair", "softmax"]\n+++\nA text.\n')
    found = scripted(tmp_path / "edit.md")
    assert found == Scripted("edit", text="A text.\n", words=("repair", "softmax"))
    assert found.fits("please repair this softmax")
    assert not found.fits("please repair this")


@pytest.mark.parametrize("file", ["a.toml", "a.json"])
def test_a_table_says_all_of_it(file, tmp_path):
    text = {
        "a.toml": 'status = 429\nheaders = { "Retry-After" = "1" }\n',
        "a.json": '{"status": 429, "headers": {"Retry-After": "1"}}',
    }[file]
    (tmp_path / file).write_text(text)
    assert scripted(tmp_path / file) == Scripted("a", status=429, headers={"Retry-After": "1"})


def test_what_is_chosen_by_name_fits_no_prompt():
    assert not Scripted("a").fits("anything")


def test_a_field_that_is_not_known_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text("statos = 429\n")
    with pytest.raises(TypeError, match="statos"):
        scripted(tmp_path / "a.toml")


def test_two_files_of_one_name_are_refused(tmp_path):
    (tmp_path / "a.toml").write_text("")
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ValueError, match="one name"):
        library(tmp_path)


def test_there_is_an_answer_of_each_sort():
    found = library()
    assert {a.status for a in found.values()} >= {200, 400, 404, 429, 500}
    assert any(a.refusal for a in found.values())
    assert any(a.broken for a in found.values())
    assert any(a.cut is not None and not a.broken for a in found.values())
    assert any(a.delay for a in found.values())
