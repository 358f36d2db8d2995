"""Winners go to the user's destination, or by default to a harmless one."""

from types import SimpleNamespace

import pytest

from ir.errors import KernelError
from search.cli.arguments import arguments
from search.cli.invocation import Invocation
from search.cli.promote import USUAL, destination

SPEC = '''def twice(x: f32[M]) -> f32[M]:
    """Double x."""
    y[m] = x[m] * 2.0
    return y
'''


def problem(library=True, ours=True, for_tests=False):
    settings = SimpleNamespace(kernel="twice", target="chip", spec=SPEC, backends=("tongue",))
    return SimpleNamespace(
        library=library,
        ours=ours,
        for_tests=for_tests,
        settings=settings,
        machine=SimpleNamespace(name="chip", backends=("tongue",)),
    )


LIBRARY, OWN, TESTED = problem(), problem(library=False), problem(for_tests=True)
EXTERNAL = problem(ours=False)
EVERY = (LIBRARY, OWN, TESTED, EXTERNAL)


@pytest.fixture
def where(tmp_path):
    """The numbers of the kernels above that go to the checkout and to a folder."""

    def found(*words, checkout=True, problems=EVERY):
        around = Invocation(tmp_path / "tree" if checkout else None, tmp_path, {}, True, (), 1)
        made = destination(arguments(words, "", ""), around, problems)
        promoted = [n for n, one in enumerate(problems) if made.promotes(one)]
        return promoted, [n for n, one in enumerate(problems) if made.writes(one)], made.out

    return found


def test_a_checkout_takes_the_librarys_kernels_by_itself(where):
    assert where() == ([0], [], None)
    assert where("--no-promote") == ([], [], None)


def test_without_a_store_nothing_is_promoted_unless_asked(where, tmp_path):
    assert where("--no-store") == ([], [], None)
    assert where("--no-store", "--promote", problems=EVERY[:3]) == ([0, 1, 2], [], None)
    assert where("--no-store", "--out=here") == ([], [0, 1, 2, 3], tmp_path / "here")
    assert where("--no-store", checkout=False) == ([], [0, 1, 3], tmp_path / USUAL)


def test_a_checkout_takes_every_kernel_on_request(where):
    assert where("--promote", problems=EVERY[:3]) == ([0, 1, 2], [], None)
    with pytest.raises(KernelError, match="could not be tested later"):
        where("--promote")
    with pytest.raises(KernelError, match="no checkout"):
        where("--promote", checkout=False)


def test_outside_a_checkout_a_folder_takes_them_unless_nothing_is_to_be_written(where, tmp_path):
    assert where(checkout=False) == ([], [0, 1, 3], tmp_path / USUAL)
    assert where("--no-promote", checkout=False) == ([], [], None)
    assert where("--model-new=x.py", checkout=False) == ([], [], None)


def test_a_folder_that_is_named_takes_them_all(where, tmp_path):
    assert where("--out=here") == ([0], [0, 1, 2, 3], tmp_path / "here")
    assert where("--out=here", "--no-promote")[0] == []


def test_only_a_folder_that_is_named_must_be_new(where, tmp_path):
    for name in (USUAL, "here"):
        (tmp_path / name / "twice" / "chip").mkdir(parents=True)
    assert where(checkout=False)[1] == [0, 1, 3]
    with pytest.raises(KernelError, match="already exists") as fault:
        where("--out=here")
    assert fault.value.where == "--out" and "--overwrite" in fault.value.hint
    assert where("--out=here", "--overwrite")[1] == [0, 1, 2, 3]


def test_a_file_in_the_way_is_told_before_a_search(where, tmp_path):
    (tmp_path / USUAL).write_text("mine")
    with pytest.raises(KernelError, match="is a file"):
        where(checkout=False)
