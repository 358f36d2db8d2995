"""The example of docs/jobs.md is a job, and the page names every key of a file."""

import re
from pathlib import Path

from search.cli.arguments import arguments
from search.cli.job_file import BUDGET, OF_SEARCH, TOP, read_job
from search.loop.rounds import ROUND, JobBudget, Share
from testing.cli.place import SCALE

PAGE = (Path(__file__).parents[1] / "docs" / "jobs.md").read_text(encoding="utf-8")


def test_the_example_is_a_job(tmp_path):
    (tmp_path / "night.toml").write_text(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])
    (tmp_path / "scale.kir").write_text(SCALE)
    job = read_job(arguments(["--job=night.toml"], "", ""), lambda name: tmp_path / name)
    assert (job.name, job.budget) == ("night", JobBudget(evaluations=600))
    assert [p.title for p in job.problems] == [
        "softmax on npu",
        "layer_norm on npu",
        "scale on npu",
        "softmax on npu_small",
        "layer_norm on npu_small",
        "scale on npu_small",
        "attention on npu",
        "rmsnorm_matmul on npu",
    ]
    assert [s.share for s in job.searches[-2:]] == [Share(3.0, 0, 200), Share(1.0, 1, 64)]
    assert job.problems[-1].settings.dispatch == 2 and job.problems[0].settings.seed == 1


def test_every_key_is_told():
    for key in (*TOP, *BUDGET, *OF_SEARCH):
        assert f"`{key}`" in PAGE or f"`[[{key}]]`" in PAGE or f"`[{key}]`" in PAGE, key
    assert f"at least: {ROUND} |" in PAGE
