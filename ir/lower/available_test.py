"""A machine's listed verbs are exactly those that it accepts."""

from dataclasses import replace

import pytest

from ir.errors import KernelError
from ir.lower.available import OF_CLASS, available, require_of_class, require_rendered
from ir.lower.verb_table import VERBS
from ir.machine import Rendering
from ir.schedule import Decision
from testing.samples.samples import SMALL, WITH_THREADS

MACHINES = (SMALL, WITH_THREADS)


def test_verbs_of_one_class_are_those_that_some_class_names():
    named = {verb for machine in MACHINES for verb in machine.model.verbs}
    assert named - {"pack"} == OF_CLASS, "edits propose `pack` on some machines, all take it"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_what_is_not_available_is_refused(machine):
    chip = replace(machine, rendering=Rendering("tongue", ("pipeline", "threads")))
    for verb in set(VERBS) - set(available(chip)) - {"copy"}:
        check = require_of_class if chip.renders(verb) else require_rendered
        with pytest.raises(KernelError):
            check(Decision(verb, "x"), chip)
    for verb in available(chip):
        require_rendered(Decision(verb, "x"), chip)
        if verb in OF_CLASS:
            require_of_class(Decision(verb, "x"), chip)


def test_a_copy_needs_an_engine():
    assert "copy" not in available(replace(SMALL, engines=()))
