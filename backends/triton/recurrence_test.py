"""Recurrences in Triton: the launcher runs the launches of a step again and again, in order."""

import pytest

from backends.gpu.model.model import modelled
from backends.registry import REGISTRY, target
from backends.triton.backend import Triton
from backends.triton.rules import RULES
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from testing.samples.samples import RECURRENT, workload
from testing.slow import in_turn

CHIPS = ("h200", "mi300")


def emitted(nest, machine):
    return Triton(REGISTRY.manifest("triton")).emit(nest, machine)


@pytest.mark.parametrize(("name", "chip"), in_turn(RECURRENT, CHIPS))
def test_a_step_is_compiled_once_however_many_there_are(name, chip, tmp_path):
    machine, w = target(chip), workload(name)
    nest = lower(w.spec, autoschedule(w.spec, machine, w.tune), machine, w.tune)
    source = emitted(nest, machine)
    built = Triton(REGISTRY.manifest("triton")).build(source, nest, machine, tmp_path)
    names = {launch.name for launch in nest.launches}
    assert {f.split(".")[0] for f in built.figures if f.endswith(".registers")} == names
    assert built.figures["spills"] == 0


def test_a_step_is_no_constant_of_its_kernel():
    w, machine = workload("backwards"), target("h200")
    nest = lower(w.spec, plain(w.spec, machine, w.tune), machine, w.tune)
    assert not nest.schedule.of("carry")
    text = emitted(nest, machine)
    assert '@triton.jit(do_not_specialize=["t_at"])' in text
    assert "for t_at in reversed(range(T)):" in text


def test_the_model_counts_each_step_and_reads_weights_from_the_cache_after_the_first():
    w, machine = workload("rnn"), target("h200")
    nest = lower(w.spec, autoschedule(w.spec, machine, w.tune), machine, w.tune)
    (step,) = (launch.name for launch in nest.launches if launch.repeat)

    def us(steps):
        return modelled(nest, machine, RULES, w.tune | {"T": steps}, {}).figures[f"{step}.us"]

    later = us(2) - us(1)
    assert 0 < later <= us(1)
    assert us(11) - us(1) == pytest.approx(10 * later, rel=1e-3)
