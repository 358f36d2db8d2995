import sys

import pytest

from backends.registry import (
    REGISTRY,
    Registry,
    backend,
    backend_for,
    backend_names,
    target,
    target_names,
)
from ir.errors import KernelError

MANIFEST = """
name = "{name}"
title = "t"
language = "l"
extension = "e"
object = "{object}"
correct_by = "device"
time_kind = "measured"
dtypes = ["f32"]
toolchain = "a rare compiler"
verbs = []
"""
TARGET = """
name = "{name}"
title = "t"
class = "tiles"
backends = ["{backend}"]
levels = {{ grid = 4 }}
[spaces.global]
bytes = 1000
bytes_per_second = 1e9
[spaces.local]
bytes = 100
[units.vector]
flops = {{ f32 = 1e9 }}
"""


@pytest.fixture
def registry(tmp_path):
    (tmp_path / "targets").mkdir()
    for name, made in (("alpha", "backend:Missing"), ("beta", "nowhere:Beta")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "backend.toml").write_text(MANIFEST.format(name=name, object=made))
        text = TARGET.format(name=f"{name}_chip", backend=name)
        (tmp_path / "targets" / f"{name}_chip.toml").write_text(text)
    return Registry(tmp_path, "backends")


def test_backends_and_targets_are_found_by_folder(registry):
    assert registry.backend_names() == ("alpha", "beta")
    assert registry.target_names() == ("alpha_chip", "beta_chip")
    (registry.folder / "alpha" / "backend.toml").unlink()
    assert registry.backend_names() == ("beta",)


def test_what_is_for_tests_is_listed_only_when_asked_for():
    hidden = set(backend_names(for_tests=True)) - set(backend_names())
    assert hidden
    assert all(REGISTRY.manifest(n).for_tests for n in hidden)
    more = set(target_names(for_tests=True)) - set(target_names())
    assert more
    assert all(set(target(n).backends) <= hidden for n in more)


def test_listing_imports_no_backend():
    before = set(sys.modules)
    backend_names(for_tests=True)
    target_names(for_tests=True)
    assert set(sys.modules) == before


@pytest.mark.parametrize("name", target_names(for_tests=True))
def test_every_target_file_can_be_read(name):
    assert target(name).name == name


def test_a_target_is_read_from_a_path(registry, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(TARGET.format(name="my_chip", backend="alpha"))
    assert registry.target(str(file)).name == "my_chip"


def test_the_first_backend_of_a_machine_serves_it():
    (name,) = set(target_names(for_tests=True)) - set(target_names())
    machine = target(name)
    served = backend_for(machine)
    assert served.manifest.name == machine.backends[0]
    assert backend_for(machine, machine.backends[0]) is served
    assert backend(machine.backends[0]) is served


def fault(call, *args):
    with pytest.raises(KernelError) as caught:
        call(*args)
    assert caught.value.hint
    return str(caught.value)


def test_an_unknown_target_gets_the_nearest_name_and_the_list(registry):
    text = fault(registry.target, "alpha_chap")
    assert "there is no target `alpha_chap`" in text
    assert "allowed: alpha_chip, beta_chip" in text
    assert "did you mean `alpha_chip`?" in text


def test_an_unknown_backend_gets_the_nearest_name(registry):
    assert "did you mean `beta`?" in fault(registry.backend, "betta")


def test_a_file_that_is_not_there_is_named(registry):
    assert "/no/where.toml: the file cannot be read" in fault(registry.target, "/no/where.toml")


def test_a_file_that_is_not_toml_is_named(registry, tmp_path):
    (tmp_path / "x.toml").write_text("name = = 1")
    text = fault(registry.target, str(tmp_path / "x.toml"))
    assert "x.toml: the file is not TOML" in text
    assert "line 1" in text


def test_a_file_that_is_not_text_is_named(registry, tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    assert "not a text in UTF-8" in fault(registry.target, str(tmp_path / "x.toml"))


def test_a_missing_field_of_a_target_is_named_with_its_file(registry, tmp_path):
    text = TARGET.format(name="my_chip", backend="alpha").replace("bytes = 100\n", "")
    (tmp_path / "x.toml").write_text(text)
    text = fault(registry.target, str(tmp_path / "x.toml"))
    assert "x.toml: field `spaces.local.bytes` is missing" in text


def test_a_target_must_list_backends_that_are_there(registry, tmp_path):
    (tmp_path / "x.toml").write_text(TARGET.format(name="x", backend="alfa"))
    text = fault(registry.target, str(tmp_path / "x.toml"))
    assert "x.toml: there is no backend `alfa`" in text
    assert "did you mean `alpha`?" in text


def test_a_name_must_be_that_of_its_file(registry):
    (registry.folder / "targets" / "gamma.toml").write_text(
        TARGET.format(name="other", backend="alpha")
    )
    assert "field `name` is `other`" in fault(registry.target, "gamma")
    (registry.folder / "beta" / "backend.toml").write_text(
        MANIFEST.format(name="alpha", object="backend:X")
    )
    assert "the folder is `beta`" in fault(registry.manifest, "beta")


def test_a_backend_that_a_machine_does_not_list_is_refused(registry):
    text = fault(registry.backend_for, registry.target("alpha_chip"), "beta")
    assert "target `alpha_chip` is not served by backend `beta`" in text
    assert "allowed: alpha" in text


def test_a_backend_that_cannot_be_imported_says_what_it_needs(registry):
    text = fault(registry.backend, "beta")
    assert "backend `beta` cannot be loaded" in text
    assert "it needs: a rare compiler" in text
