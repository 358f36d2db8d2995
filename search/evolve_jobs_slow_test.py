"""A job of two kernels on three targets is killed, and continues in another tree with a copy of the
store."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import search
from testing.cli.place import Place

TREE = Path(search.__file__).parents[1]
JOB = """
name = "tiny"

[[search]]
kernels = ["rows.kir", "scale.kir"]
targets = ["npu", "npu_small", "h200"]
evaluations = 3
"""
KEPT = ("--store=runs.db", "--workers=1", "--out=results", "--json")


def found(place, *words, **more):
    code, out, err = place.run(*words, *KEPT, **more)
    assert code == 0, err
    table = json.loads(out)
    for each in (table["job"], *table["job"]["searches"]):
        each.pop("seconds", None)
        each.pop("taken_s", None)
    return table


def another_image(folder):
    """Environment of a process that runs the program from a copy of its tree at another path."""
    tree = folder / "elsewhere" / "tree"
    kept = shutil.ignore_patterns(".git", "__pycache__", "*_test.py", "kernels_generated", "docs")
    shutil.copytree(TREE, tree, ignore=kept)
    paths = [str(tree) if Path(p or os.getcwd()) == TREE else p for p in sys.path]
    assert str(tree) in paths
    variables = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": str(folder / "pyc")}
    return variables | {"PYTHONDONTWRITEBYTECODE": ""}


def test_a_job_goes_on_on_another_machine_image(tmp_path):
    for name in ("killed", "image", "whole"):
        (tmp_path / name).mkdir()
    killed, image, whole = (Place(tmp_path / n, "npu") for n in ("killed", "image", "whole"))
    for place in (killed, whole):
        (place.work / "job.toml").write_text(JOB)
    dies = killed.signalled(signal.SIGKILL, 8)
    code, _, err = killed.run("--job=job.toml", *KEPT, **dies)
    assert code == -signal.SIGKILL and "round 3" in err and "round 4" not in err
    code, _, err = killed.run("--store=runs.db", f"--copy-store={image.work / 'runs.db'}")
    assert code == 0, err
    shutil.rmtree(killed.folder)
    ended = found(image, "--resume=tiny-1", **another_image(tmp_path / "image"))
    assert ended["job"]["evaluations"] == 6 * 3
    expected = found(whole, "--job=job.toml")
    for table in (ended, expected):
        for run in table["runs"]:
            assert Path(run.pop("out")).is_dir()
    assert ended == expected
