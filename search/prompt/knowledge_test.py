"""A library has the documents of its folders."""

import pytest

from ir.errors import KernelError
from search.prompt.document import Document
from search.prompt.knowledge import Library, library, library_of, notes


def write(folder, name, title="T"):
    folder.mkdir(exist_ok=True)
    found = Document(name, "idioms", title, f"What {name} does. More.\n", ("ir/lower/verbs.py",))
    (folder / f"{name}.md").write_text(found.file_text, encoding="utf-8")
    return found


def test_documents_are_read_in_the_order_of_folders_and_names(tmp_path):
    made = [write(tmp_path / "b", "z"), write(tmp_path / "a", "c"), write(tmp_path / "a", "d")]
    (tmp_path / "a" / "c.txt").write_text("no document", encoding="utf-8")
    assert list(library([tmp_path / "b", tmp_path / "a"])) == made
    assert len(library([tmp_path / "nowhere"])) == 0


def test_the_index_has_a_line_for_each(tmp_path):
    write(tmp_path / "a", "c", "Loops")
    assert library([tmp_path / "a"]).index == "- c (idioms; ): Loops. What c does.\n"


def test_a_name_is_of_one_document(tmp_path):
    write(tmp_path / "a", "c"), write(tmp_path / "b", "c")
    with pytest.raises(KernelError, match="two documents are called `c`"):
        library([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize("content", [b"# No header\n\nText.\n", b"\xff\xfe"])
def test_a_file_that_is_no_document_is_named(tmp_path, content):
    (tmp_path / "bad.md").write_bytes(content)
    with pytest.raises(KernelError) as caught:
        library([tmp_path])
    assert "bad.md" in str(caught.value)


def test_a_document_is_found_by_its_name(tmp_path):
    made = write(tmp_path / "a", "c")
    found = library([tmp_path / "a"])
    assert found.named("c") == made
    with pytest.raises(KernelError, match="no document `d`") as caught:
        found.named("d")
    assert caught.value.allowed == "c"


def test_more_documents_replace_those_of_the_same_name(tmp_path):
    one, other = write(tmp_path / "a", "c"), write(tmp_path / "b", "c", "Other")
    assert Library((one,)).with_documents([other]).documents == (other,)


def test_a_backend_without_notes_has_what_holds_for_all(tmp_path):
    assert not notes("nobody").exists()
    assert len(library_of("nobody")) > 0
