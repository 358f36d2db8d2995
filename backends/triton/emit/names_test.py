"""Names of a nest as a source can hold them."""

import pytest

from backends.gpu.tile import CONSTANTS, OF_THREADS, SORTS
from backends.triton.emit.names import NAMES, spelled
from backends.triton.emit.spelling import HELPERS, templates
from ir.parse.expression import RESERVED
from testing.samples.samples import lowered, spec_of


def named(name):
    """What a tensor of a name is called in a source."""
    spec = spec_of(
        f"{name}[m] = 2.0 * x[m]", f"y[m] = {name}[m] + 1.0", inputs="x: f32[M]", result="f32[M]"
    )
    made = spelled(lowered(spec, f"kernel({name})", sizes={"M": 9}))
    return made.launches[0].parameters[-1].name


@pytest.mark.parametrize(
    "name",
    [
        "tl",
        "float",
        "len",
        "m_at",
        "x_ptr",
        "offs_m",
        "mask_m",
        "launch",
        "triton",
        *(h for h in HELPERS if h not in RESERVED),
    ],
)
def test_a_tensor_never_hides_a_name_of_the_file(name):
    assert named(name) in (f"{name}_", f"x_{name}")


@pytest.mark.parametrize("name", ["acc", "inner", "input", "acc_step"])
def test_other_tensors_keep_their_names(name):
    assert named(name) == name


def test_every_sort_of_name_has_a_form():
    forms = templates().table("names.py.j2", "NAMES")
    assert set(forms) == set(SORTS) - set(OF_THREADS)
    assert templates().table("names.py.j2", "CONSTANTS") == list(CONSTANTS)


def test_what_is_called_after_a_name():
    assert NAMES.called("x", ("pointer", "bulk")) == ("x_ptr", "BULK_X")
    assert NAMES.called("M", ("pointer", "bulk")) == (), "sizes are called what they are"
