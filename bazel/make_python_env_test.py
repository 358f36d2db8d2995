"""What the Python environment's maker must do, without installing anything."""

import pathlib

import pytest

from bazel import make_python_env
from bazel.make_python_env import EnvError


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "requirements.lock"
    path.write_text("a==1\nb==2\n")
    return path


@pytest.fixture
def make_count(monkeypatch):
    """Replaces the installation; the list grows by one with each."""
    made = []

    def make(env, lock):
        env.mkdir()
        made.append(env)

    def facts_of(env):
        return make_python_env.EnvironmentPaths(str(env), "launcher", "include", "pybind11")

    monkeypatch.setattr(make_python_env, "make", make)
    monkeypatch.setattr(make_python_env, "facts_of", facts_of)
    return made


def test_comments_and_order_do_not_matter():
    key = make_python_env.key_of("a==1\nb==2\n")
    assert make_python_env.key_of("# text\nb==2  # why\n\na==1\n") == key


def test_another_version_is_another_environment():
    assert make_python_env.key_of("a==1\n") != make_python_env.key_of("a==2\n")


def test_second_call_finds_the_first_environment(lock, tmp_path, make_count):
    first = make_python_env.ensure(lock, tmp_path / "envs")
    assert make_python_env.ensure(lock, tmp_path / "envs") == first
    assert len(make_count) == 1


def test_unfinished_environment_is_made_again(lock, tmp_path, make_count, monkeypatch):
    def interrupted(env, lock):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(make_python_env, "make", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_python_env.ensure(lock, tmp_path / "envs")
    make_python_env.ensure(lock, tmp_path / "envs")
    assert len(make_count) == 1


def test_old_python_is_refused(lock, tmp_path, monkeypatch):
    monkeypatch.setattr(make_python_env.sys, "version_info", (3, 10, 9))
    with pytest.raises(EnvError, match="3.11 or newer"):
        make_python_env.ensure(lock, tmp_path / "envs")


def test_failed_step_says_what_to_do(capfd):
    with pytest.raises(EnvError, match="step failed; advice"):
        make_python_env.run("step", "advice", "sh", "-c", "echo reason; exit 3")
    assert capfd.readouterr().err == "reason\n"


def test_cache_folder_follows_the_account(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert make_python_env.cache_folder() == pathlib.Path("/home/ada/.cache/speciate/python_env")
    monkeypatch.setenv("XDG_CACHE_HOME", "/fast")
    assert make_python_env.cache_folder() == pathlib.Path("/fast/speciate/python_env")


def test_launcher_starts_the_interpreter_safely(tmp_path):
    (tmp_path / "bin").mkdir()
    make_python_env.write_launcher(tmp_path)
    launcher = tmp_path / "bin" / "bazel-python"
    assert f'exec {tmp_path}/bin/python3 -P "$@"' in launcher.read_text()
    assert launcher.stat().st_mode & 0o111
