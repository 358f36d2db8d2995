"""The current invocation: a user's paths, and the folder of generated kernels."""

from pathlib import Path

from search.cli.invocation import current_invocation


def test_a_build_gives_the_tree_and_the_users_folder(tmp_path):
    (tmp_path / "WORKSPACE").touch()
    tree = {"BUILD_WORKSPACE_DIRECTORY": str(tmp_path), "BUILD_WORKING_DIRECTORY": "/some/where"}
    around = current_invocation(tree)
    assert around.checkout == tmp_path
    assert around.path("a/b.html") == Path("/some/where/a/b.html")
    assert around.path("/a/b.html") == Path("/a/b.html")
    assert around.command(["--kernel=a b"]) == "./bazelw run //search:evolve -- '--kernel=a b'"


def test_a_tree_that_is_no_checkout_is_not_written_to(tmp_path):
    assert current_invocation({"BUILD_WORKSPACE_DIRECTORY": str(tmp_path)}).checkout is None


def test_without_a_build_paths_are_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    around = current_invocation({})
    assert around.path("x.kir") == tmp_path / "x.kir"
    assert around.command(["--json"]) == "python3 -m search.evolve --json"
    assert around.workers >= 1


def test_nobody_watches_a_continuous_build_or_a_dumb_terminal():
    assert current_invocation({"CI": "true"}).quiet and current_invocation({"TERM": "dumb"}).quiet
    assert not current_invocation({"TERM": "xterm"}).quiet


def test_the_store_lies_in_the_users_data_folder():
    assert current_invocation({"XDG_DATA_HOME": "/data"}).store == "/data/speciate/store.db"
    assert current_invocation({}).store.endswith("/.local/share/speciate/store.db")
