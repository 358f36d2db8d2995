"""All backends of a target with comparable times are in the race; a user can limit them."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from ir.errors import KernelError
from search.cli import serving as module
from search.cli.modules import not_imported, require_imported
from search.cli.serving import serving
from search.core.testing import CHIP

TARGET = replace(CHIP, backends=("one", "two", "three"))
GOOD = {"correct_by": "interpreter", "time_kind": "modelled"}


@dataclass
class Known:
    """A backend with a given description of this machine."""

    name: str
    said: dict

    @property
    def manifest(self):
        return SimpleNamespace(
            name=self.name,
            language=f"language {self.name}",
            imported=True,
            extension="py" if self.name == "one" else "cc",
            rendering=self.name,
        )

    def available(self, machine):
        return self.said


@pytest.fixture
def known(monkeypatch):
    """The backends by name, whose descriptions can be changed."""
    found = {name: Known(name, dict(GOOD)) for name in TARGET.backends}

    def backend_for(machine, wanted):
        if wanted not in machine.backends:
            raise KernelError(f"target `chip` is not served by backend `{wanted}`")
        if found[wanted] is None:
            raise KernelError(f"backend `{wanted}` cannot be loaded")
        return found[wanted]

    monkeypatch.setattr(module, "backend_for", backend_for)
    return found


def names(found):
    return [one.name for one in found.served]


def test_all_race_each_with_the_target_as_it_serves_it(known):
    found = serving(TARGET, ())
    assert names(found) == ["one", "two", "three"] and not found.notes
    assert [one.machine.rendering for one in found.served] == ["one", "two", "three"]


def test_a_user_names_some_in_any_order(known):
    assert names(serving(TARGET, ("three", "one"))) == ["three", "one"]
    with pytest.raises(KernelError, match="not served by backend `four`") as caught:
        serving(TARGET, ("four",))
    assert caught.value.where == "--backend"


def test_what_can_check_nothing_here_is_left_out_with_its_reason(known):
    known["two"].said = {"why": "there is no compiler"}
    known["three"] = None
    found = serving(TARGET, ())
    assert names(found) == ["one"]
    first, second = found.notes
    assert first == "chip: without `two`: there is no compiler"
    assert second == "chip: without `three`: backend `three` cannot be loaded"


def test_what_is_named_is_not_left_out(known):
    known["two"].said = {"why": "there is no compiler"}
    with pytest.raises(KernelError, match="there is no compiler"):
        serving(TARGET, ("one", "two"))


def test_where_none_is_left_the_first_says_why(known):
    for name, one in known.items():
        one.said = {"why": f"{name} lacks something"}
    with pytest.raises(KernelError, match="one lacks something"):
        serving(TARGET, ())


def test_times_of_different_kinds_do_not_race(known):
    known["two"].said = {"correct_by": "device", "time_kind": "measured"}
    found = serving(TARGET, ())
    assert names(found) == ["two"]
    assert found.notes == (
        "chip: without `one`: its times are modelled here",
        "chip: without `three`: its times are modelled here",
    )
    with pytest.raises(KernelError, match="times of `one` are modelled here, others are measured"):
        serving(TARGET, ("one", "two"))


def test_a_use_takes_those_that_have_what_it_needs(known):
    found = serving(TARGET, ()).narrowed(not_imported)
    assert names(found) == ["one"]
    assert found.notes[0] == (
        "chip: without `two`: its sources are language two, which a module of Python cannot call"
    )
    require_imported({"chip": found.served})
    named = serving(TARGET, ("two",)).narrowed(not_imported)
    assert names(named) == ["two"] and not named.notes
    with pytest.raises(KernelError, match="are language two, which a file of Python cannot hold"):
        require_imported({"chip": named.served})
