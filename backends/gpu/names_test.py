"""Names that a source can hold."""

import re

from backends.gpu.names import SourceNames
from testing.samples.samples import lowered, spec_of

FORMS = {"pointer": "%s_ptr", "origin": "offs_%s", "steps": "STEPS_%s"}
NAMES = SourceNames(
    words=frozenset({"load"}),
    made=re.compile(r".+_ptr"),
    of_tensor=("pointer", "steps"),
    of_index=("origin",),
    capitals=("steps",),
    forms=lambda: FORMS,
)


def tensors(*names):
    """What the tensors of a nest are called in a source, the last one beside reserved words."""
    spec = spec_of(
        f"y[m] = {' + '.join(f'{n}[m]' for n in names)}",
        inputs=", ".join(f"{n}: f32[M]" for n in names),
        result="f32[M]",
    )
    made = NAMES.spelled(lowered(spec, sizes={"M": 9}), reserved={"store"})
    return [t.name for t in made.spec.inputs]


def test_words_and_what_is_made_of_names_are_avoided():
    assert tensors("x", "load", "store", "z_ptr") == ["x", "load_", "store_", "z_ptr_"]


def test_a_size_has_no_identifiers_but_its_name():
    assert NAMES.called("x", NAMES.of_tensor) == ("x_ptr", "STEPS_X")
    assert NAMES.called("M", NAMES.of_tensor) == ()
