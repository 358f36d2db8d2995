import shutil

import jinja2
import pytest

from backends import emit
from backends.backend import BackendError
from backends.emit import Templates, compile_ahead, template_digest


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "main.j2").write_text(
        "{% for n in names %}\n{{ n | shout }}\n{% endfor %}\nend\n"
    )
    return tmp_path


def made(folder, text):
    (folder / "x" / "t.j2").write_text(text)
    return Templates("x", folder=folder)


def fault(templates, template="t.j2", **values):
    with pytest.raises(BackendError) as caught:
        templates.render(template, **values)
    assert caught.value.stage == "emit"
    return caught.value.reason


def test_blocks_leave_no_lines_and_filters_are_the_backends(folder):
    templates = Templates("x", {"shout": str.upper}, folder=folder)
    assert templates.render("main.j2", names=["a", "b"]) == "A\nB\nend\n"


def test_values_of_the_backend_are_in_every_template(folder):
    (folder / "x" / "t.j2").write_text("{{ answer }}")
    assert Templates("x", values={"answer": 42}, folder=folder).render("t.j2") == "42"


@pytest.mark.parametrize(
    ("text", "line"),
    [("One.\nTwo.", "One. Two."), ("a\0b\rc\u2028d", "a b c d"), ("on \\", "on \\.")],
)
def test_a_text_for_a_comment_ends_with_its_line(folder, text, line):
    (folder / "x" / "t.j2").write_text("// {{ text | one_line }}\n")
    assert Templates("x", folder=folder).render("t.j2", text=text) == f"// {line}\n"


def test_a_missing_template_is_named(folder):
    reason = fault(Templates("x", folder=folder), "gone.j2")
    assert reason == "template x/gone.j2: there is no template `gone.j2`"


def test_a_name_that_is_not_given_is_named_with_its_line(folder):
    reason = fault(made(folder, "one\n{{ two }}\n"))
    assert reason == "template x/t.j2, line 2: UndefinedError: 'two' is undefined"


def test_a_syntax_error_is_named_with_its_line(folder):
    assert fault(made(folder, "one\n{% for %}\n")).startswith("template x/t.j2, line 2: ")


def test_a_fault_in_an_included_template_is_found_there(folder):
    (folder / "x" / "inner.j2").write_text("\n\n{{ 1 // 0 }}")
    reason = fault(made(folder, "{% include 'inner.j2' %}"))
    assert reason.startswith("template x/inner.j2, line 3: ZeroDivisionError")


def test_a_filter_that_fails_is_a_fault_of_the_template(folder):
    reason = fault(Templates("x", {"shout": int}, folder=folder), "main.j2", names=["a"])
    assert reason.startswith("template x/main.j2, line 2: ValueError")


@pytest.mark.parametrize("text", ["{{ [1, 2] | random }}", "{{ lipsum() }}"])
def test_nothing_random_is_in_reach(folder, text):
    fault(made(folder, text))


def test_the_digest_follows_texts_and_names(folder):
    first = template_digest("x", folder)
    assert first == template_digest("x", folder) == Templates("x", folder=folder).digest()
    (folder / "x" / "more.j2").write_text("")
    second = template_digest("x", folder)
    (folder / "x" / "more.j2").rename(folder / "x" / "most.j2")
    assert len({first, second, template_digest("x", folder)}) == 3


def test_a_backend_without_templates_has_a_digest_too(folder):
    assert template_digest("none", folder) == template_digest("neither", folder)


def test_a_folder_that_languages_share_is_imported_by_its_path(folder):
    (folder / "c").mkdir()
    (folder / "c" / "parts.j2").write_text("{% macro add(a) %}{{ 1 // a }}{% endmacro %}")
    templates = made(folder, '{% from "c/parts.j2" import add %}\n{{ add(n) }}')
    assert templates.render("t.j2", n=1) == "1"
    assert fault(templates, n=0).startswith("template c/parts.j2, line 1: ZeroDivisionError")
    (folder / "c" / "wrong.j2").write_text("{% for %}")
    reason = fault(made(folder, '{% import "c/wrong.j2" as c %}'))
    assert reason.startswith("template c/wrong.j2, line 1: ")
    reason = fault(made(folder, '{% import "c/gone.j2" as c %}'))
    assert reason == "template x/t.j2: there is no template `c/gone.j2`"


def test_the_digest_follows_what_is_imported_from_a_shared_folder(folder):
    (folder / "c").mkdir()
    (folder / "c" / "inner.j2").write_text("1")
    (folder / "c" / "outer.j2").write_text('{% include "c/inner.j2" %}')
    (folder / "c" / "unused.j2").write_text("1")
    templates = made(folder, '{%- include "c/outer.j2" %}')
    first = templates.digest()
    (folder / "c" / "unused.j2").write_text("2")
    assert templates.digest() == first
    (folder / "c" / "inner.j2").write_text("2")
    assert templates.digest() != first


def test_a_language_adds_nodes_to_those_that_are_shared(folder):
    (folder / "c").mkdir()
    (folder / "c" / "nodes.j2").write_text(
        "{% macro pair(p) %}({{ expr(p[0]) }}, {{ expr(p[1]) }}){% endmacro %}"
        '{% set expr = speller({"tuple": pair}) %}'
    )
    text = (
        '{% from "c/nodes.j2" import expr %}{% macro whole(n) %}i{{ n }}{% endmacro %}'
        '{% set expr = expr.add({"int": whole}) %}{{ expr(node) }}'
    )
    assert made(folder, text).render("t.j2", node=(1, (2, 3))) == "(i1, (i2, i3))"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "speciate" / "templates"


def no_compiler(monkeypatch):
    def refuse(*_):
        raise AssertionError("it is compiled")

    monkeypatch.setattr(jinja2.Environment, "compile", refuse)


def test_a_template_is_compiled_once_for_all_processes_of_a_user(folder, cache, monkeypatch):
    assert Templates("x", {"shout": str.upper}, folder=folder).render("main.j2", names="a")
    assert len(list(cache.iterdir())) == 1
    no_compiler(monkeypatch)
    again = Templates("x", {"shout": str.title}, folder=folder)
    assert again.render("main.j2", names=["ab"]) == "Ab\nend\n"


def test_a_template_that_changed_is_compiled_again(folder, cache):
    assert made(folder, "one").render("t.j2") == "one"
    assert made(folder, "two").render("t.j2") == "two"
    assert len(list(cache.iterdir())) == 2


def test_a_compiled_template_calls_the_filters_of_its_backend_on_constants_too(folder, cache):
    (folder / "x" / "t.j2").write_text("{{ 'a' | f }}")
    for filter, text in ((str.upper, "A"), (ord, "97")):
        assert Templates("x", {"f": filter}, folder=folder).render("t.j2") == text


def test_a_fault_in_a_compiled_template_is_found_where_it_lies_now(folder, cache, monkeypatch):
    assert fault(made(folder, "\n{{ two }}"))
    moved = folder / "moved"
    shutil.copytree(folder / "x", moved / "x")
    no_compiler(monkeypatch)
    reason = fault(Templates("x", folder=moved))
    assert reason == "template x/t.j2, line 2: UndefinedError: 'two' is undefined"


def test_a_folder_that_cannot_be_written_keeps_nothing(folder, cache):
    cache.parent.parent.write_text("a file")
    assert made(folder, "one").render("t.j2") == "one"


def test_what_the_build_compiles_ahead_is_compiled_no_more(folder, cache, monkeypatch, tmp_path):
    (folder / "c").mkdir()
    (folder / "c" / "shared.j2").write_text("{% macro m(x) %}{{ x | shout }}{% endmacro %}")
    (folder / "x" / "t.j2").write_text("{% from 'c/shared.j2' import m %}{{ m('a') }}")
    monkeypatch.setattr(emit, "BUILT", tmp_path / "ahead")
    compile_ahead(tmp_path / "ahead", folder)
    no_compiler(monkeypatch)
    assert Templates("x", {"shout": str.upper}, folder=folder).render("t.j2") == "A"
    assert not cache.exists()


def test_a_filter_that_code_is_made_for_otherwise_is_refused(folder):
    for wrong in ({"join": str}, {"f": jinja2.pass_context(lambda *_: "")}):
        with pytest.raises(ValueError, match="compiled templates"):
            Templates("x", wrong, folder=folder)
