"""The source of the compiled module, and the error if there is none."""

import pytest

from backends.sim.native import load as loading


def test_the_device_interface_is_where_generated_kernels_look() -> None:
    assert (loading.device_include() / "device.h").is_file()


def test_a_missing_compiler_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(loading.BuildError, match=r"no C\+\+ compiler: install g\+\+ 12"):
        loading._built()


def test_a_compiler_that_refuses_is_quoted_and_leaves_no_module(monkeypatch, tmp_path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho 'error: no such flag'\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(loading.BuildError, match="error: no such flag"):
        loading._built()
    assert not list(tmp_path.rglob("*.so"))


def test_the_module_has_what_callers_use() -> None:
    module = loading.load()
    assert issubclass(module.SimulationError, RuntimeError)
    assert issubclass(module.SpecError, ValueError)
    assert module.event_rate(10_000) > 0
