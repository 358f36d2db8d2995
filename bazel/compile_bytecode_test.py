"""Bytecode is made of each source, and Python takes it as it is."""

import importlib.util
import py_compile
import subprocess
import sys

import pytest

from bazel.compile_bytecode import arguments, main


def test_lines_of_a_file_stand_for_arguments(tmp_path):
    (tmp_path / "words").write_text("b\nc\n")
    assert list(arguments(["a", f"@{tmp_path}/words", "d"])) == ["a", "b", "c", "d"]


def test_python_takes_the_bytecode_without_a_look_at_the_source(tmp_path):
    source = tmp_path / "one.py"
    source.write_text("print('compiled')\n")
    made = importlib.util.cache_from_source(str(source))
    main([str(source), made])
    source.write_text("print('changed since')\n")
    words = [sys.executable, "-c", "import one; print(one.__file__)"]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["compiled", str(source)]


def test_an_error_in_a_source_ends_it(tmp_path):
    (tmp_path / "bad.py").write_text("def\n")
    with pytest.raises(py_compile.PyCompileError, match="bad.py"):
        main([str(tmp_path / "bad.py"), str(tmp_path / "bad.pyc")])
