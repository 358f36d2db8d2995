"""The file of a job: its meaning, and errors that name the place, the allowed values and a
remedy."""

import pytest

from ir.errors import KernelError
from search.cli.arguments import arguments
from search.cli.job_file import read_job, require_unsaid
from search.core.workload import WeightedShape
from search.loop.rounds import JobBudget, Share
from testing.cli.place import ROWS, SCALE

TWO = """
seed = 5
[budget]
evaluations = 40
seconds = 9.5

[[search]]
kernels = ["rows.kir", "scale.kir"]
targets = ["null"]
evaluations = 20

[[search]]
kernels = ["rows.kir"]
targets = ["npu"]
shapes = ["M=8", "M=16@2"]
seed = 7
weight = 2
priority = -1
evaluations = 12
"""


@pytest.fixture
def read(tmp_path):
    (tmp_path / "rows.kir").write_text(ROWS)
    (tmp_path / "scale.kir").write_text(SCALE)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rows.kir").write_text(SCALE.replace("def scale", "def rows"))

    def read(text):
        (tmp_path / "night.toml").write_text(text)
        return read_job(arguments(["--job=night.toml"], "", ""), lambda name: tmp_path / name)

    return read


def test_each_kernel_for_each_target_is_a_search(read):
    job = read(TWO)
    assert (job.name, job.budget) == ("night", JobBudget(40, 9.5))
    assert [p.title for p in job.problems] == ["rows on null", "scale on null", "rows on npu"]
    assert [s.share for s in job.searches] == [
        Share(1.0, 0, 20),
        Share(1.0, 0, 20),
        Share(2.0, -1, 12),
    ]
    assert [p.settings.seed for p in job.problems] == [5, 5, 7]
    assert job.problems[2].settings.workload == (
        WeightedShape({"M": 8, "K": 96, "N": 48}),
        WeightedShape({"M": 16, "K": 96, "N": 48}, 2.0),
    )


def test_without_any_limit_each_search_has_that_of_the_command(read):
    job = read('[[search]]\nkernels = ["rows.kir"]\ntargets = ["null"]\n')
    assert [s.share.evaluations for s in job.searches] == [32]


def test_the_starter_suite_for_three_targets_is_one_table(read):
    job = read('[[search]]\ntargets = ["npu", "npu_small", "null"]\nevaluations = 3\n')
    assert len(job.searches) == 14 * 3 and all(p.library for p in job.problems)


ONE = '[[search]]\nkernels = ["rows.kir"]\ntargets = ["null"]\n'
LIMIT = "[budget]\nseconds = 1\n"
FAULTS = [
    ("[[search]\n", "night.toml", "line 1"),
    ("", "night.toml", "`search` is missing"),
    ("search = []\n", "line 1", "tables `[[search]]`, one at least"),
    ("sed = 1\n" + ONE, "line 1", "did you mean `seed`?"),
    ("seed = -1\n" + ONE, "line 1", "a whole number, 0 or more"),
    ('name = "a/b"\n' + ONE, "line 1", "letters, digits"),
    (ONE + "[budget]\nround = 0\n", "line 5", "`budget.round` is 0"),
    (ONE + "[budget]\nevaluation = 1\n", "line 5", "did you mean `evaluations`?"),
    ("[[search]]\nkernels = []\n", "line 1, search 1", "`targets` is missing"),
    (ONE + "\n" + ONE.replace("null", "npux"), "line 7, search 2", "did you mean `npu`?"),
    (ONE.replace("rows", "row"), "line 2, search 1", "cannot be read"),
    (ONE.replace('"rows.kir"', '"softmx"'), "line 2, search 1", "did you mean `softmax`?"),
    (ONE.replace('["null"]', '"null"'), "line 3, search 1", "a list of texts"),
    (ONE + 'shapes = ["M=0"]\n', "line 4, search 1", "positive whole number"),
    (ONE + 'shapes = ["Q=1"]\n', "line 4, search 1", "has no size `Q`"),
    (ONE + 'policy = "best"\n', "search 1", "mcts"),
    (ONE + 'operators = ["shake"]\n', "line 4, search 1", "no operator `shake`"),
    (ONE + "dispatch = 2\n", "line 4, search 1", "give more than one `shapes`"),
    (ONE + 'problem = "m.py"\n', "line 2, search 1", "do not go together"),
    (ONE + "weight = 0\n", "line 4, search 1", "a number greater than 0"),
    (ONE + "priority = true\n", "line 4, search 1", "a whole number"),
    (LIMIT + ONE + "priority = 1\n" + ONE, "line 6, search 1", "leaves nothing"),
    (LIMIT + ONE + ONE + "priority = -1\n", "line 3, search 1", "is 0, and without a limit"),
    (ONE + ONE + 'shapes = ["M=8"]\n', "line 7, search 2", "one record for both"),
    (ONE + ONE.replace("rows", "other/rows"), "line 5, search 2", "another `rows`"),
    (
        'search = [{targets = ["null"], kernel = "rows.kir"}]\n',
        "search 1",
        "did you mean `kernels`?",
    ),
]


@pytest.mark.parametrize("text, where, what", FAULTS)
def test_an_error_says_where_and_what(read, text, where, what):
    with pytest.raises(KernelError) as caught:
        read(text)
    said = str(caught.value)
    assert where in caught.value.where + said.splitlines()[0], said
    assert what in said and "night.toml" in caught.value.where and "--kernel" not in said, said


@pytest.mark.parametrize(
    "word, hint",
    [
        ("--kernel=softmax", "say `kernels` in the file"),
        ("--target=npu", "say `targets` in the file"),
        ("--memory", "say `memory` in the file"),
        ("--no-store", "leave one of them out"),
        ("--resume=night-1", "leave one of them out"),
        ("--trace=t.json", "leave one of them out"),
    ],
)
def test_what_the_file_says_is_no_option(word, hint):
    with pytest.raises(KernelError) as caught:
        require_unsaid(arguments(["--job=night.toml", word], "", ""))
    assert caught.value.hint == hint and caught.value.where == word.partition("=")[0]
