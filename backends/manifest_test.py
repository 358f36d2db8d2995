import pytest

from backends.backend import BackendError
from backends.manifest import manifest
from ir.errors import KernelError
from ir.machine import Rendering
from testing.samples.samples import lowered, spec_of

GOOD = {
    "name": "x",
    "title": "A language",
    "language": "C++",
    "extension": "cc",
    "object": "backend:X",
    "correct_by": ["device", "interpreter"],
    "time_kind": "measured",
    "dtypes": ["f32", "f16"],
    "toolchain": "a compiler",
    "verbs": ["multicast", "pipeline"],
}


def test_a_manifest_holds_its_table_and_a_word_stands_for_a_list():
    made = manifest(GOOD)
    assert made.correct_by == ("device", "interpreter")
    assert made.time_kind == ("measured",)
    assert made.object == "backend:X" and made.table == ""
    assert not made.for_tests
    assert made.rendering == Rendering(
        "x", ("multicast", "pipeline"), "tensor", ("access",), ("bulk",)
    )
    assert manifest(GOOD | {"verbs": []}).rendering.verbs == ()


def test_a_dtype_that_a_kernel_cannot_hold_is_found():
    spec = spec_of("y[m, k] = 2.0 * x[m, k]", inputs="x: f8e4m3[M, K]", result="f16[M, K]")
    nest = lowered(spec, "tile(m, size=4)", sizes={"M": 8, "K": 8})
    with pytest.raises(BackendError, match="tensors of f8e4m3 are not held here; these are: f"):
        manifest(GOOD).require_dtypes(nest)
    manifest({**GOOD, "dtypes": ["f16", "f8e4m3"]}).require_dtypes(nest)


@pytest.mark.parametrize("field", sorted(GOOD))
def test_a_missing_field_is_named_with_its_file(field):
    table = {k: v for k, v in GOOD.items() if k != field}
    with pytest.raises(KernelError) as caught:
        manifest(table, "x/backend.toml")
    assert f"x/backend.toml: field `{field}` is missing" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "X y", "field `name` is 'X y'"),
        ("title", "  ", "field `title` is '  '"),
        ("language", 3, "field `language` is 3"),
        ("extension", ".cc", "field `extension` is '.cc'"),
        ("object", "Backend", "field `object` is 'Backend'"),
        ("correct_by", "faith", "field `correct_by` has 'faith'"),
        ("correct_by", [], "field `correct_by` is ()"),
        ("time_kind", ["measured", "measured"], "field `time_kind` is ('measured', 'measured')"),
        ("dtypes", ["f8"], "field `dtypes` has 'f8'"),
        ("dtypes", 4, "field `dtypes` is 4"),
        ("verbs", ["tile"], "field `verbs` has 'tile'"),
        ("stages_of", "launch", "field `stages_of` is 'launch'"),
        ("hints_of", "load", "field `hints_of` has 'load'"),
        ("toolchain", "", "field `toolchain` is ''"),
        ("for_tests", "yes", "field `for_tests` is 'yes'"),
        ("scales", 1, "field `scales` is 1"),
        ("hoists", "yes", "field `hoists` is 'yes'"),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_what_is_allowed(field, value, message):
    with pytest.raises(KernelError) as caught:
        manifest(GOOD | {field: value}, "here")
    assert caught.value.what == message
    assert caught.value.where == "here"
    assert caught.value.allowed


def test_an_unknown_field_gets_the_nearest_name():
    with pytest.raises(KernelError, match="did you mean `dtypes`"):
        manifest(GOOD | {"dtype": []})
