"""CuTe DSL on the GPU: kernels of the library with a matmul or a reduction of rows, at check and tuning sizes.

A GPU machine has no CuTe DSL. It runs the cubins of a folder that another machine built (`--cutedsl-built`); where the
DSL is, they are built here.
"""

import json
from pathlib import Path

import pytest

from backends.registry import backend
from backends.registry import target as machine_of
from benchmarks.built import place, read_built, sha256
from tests.device.commands import run

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("idle")]

LANGUAGE = "cutedsl"
KERNELS = (
    *("softmax", "layer_norm", "rmsnorm_matmul", "matmul_bias_gelu", "attention"),
    *("wukong_fm", "pffn", "conv1d", "conv2d", "pairwise_dot"),
)
ASKED = (f"--kernels={','.join(KERNELS)}", f"--backends={LANGUAGE}")


@pytest.fixture(scope="module")
def built(request, target, home):
    """The folder of built kernels; without it and without the DSL the tests fail."""
    machine = machine_of(target)
    if LANGUAGE not in machine.backends:
        pytest.skip(f"`{target}` is no target of CuTe DSL")
    words = ("-m", "benchmarks.prebuilt", f"--target={target}", *ASKED)
    folder = request.config.getoption("--cutedsl-built")
    if not folder:
        command = " ".join(("python3", *words, "--out=FOLDER"))
        assert backend(LANGUAGE).available(machine).get("toolchain"), (
            f"there is no CuTe DSL here: give kernels that `{command}` built elsewhere with --cutedsl-built=FOLDER"
        )
        folder = home / LANGUAGE / "built"
        run(home / LANGUAGE, *words, f"--out={folder}").require()
    found = read_built(Path(folder).absolute(), target)
    lacking = [k for k in KERNELS if not found.has(k, LANGUAGE)]
    assert not lacking, f"{folder} has no {', '.join(lacking)} of CuTe DSL"
    return found


@pytest.fixture(scope="module")
def checked(built, target, home):
    """The command that checks and times them, and its rows by kernel."""
    words = (f"--target={target}", f"--built={built.folder}", *ASKED, "--out=rows.json")
    ran = run(home / "languages", "-m", "benchmarks.languages", *words).require()
    rows = json.loads((ran.folder / "rows.json").read_text(encoding="utf-8"))["rows"]
    return ran, {row["kernel"]: row[LANGUAGE] for row in rows}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right(kernel, built, checked, note):
    ran, rows = checked
    row = rows[kernel]
    note(command=ran.command.replace(f"{built.folder}", built.folder.name), **row)
    assert "failure" not in row, row["failure"]
    assert (row["correct_by"], row["time_kind"]) == ("device", "measured")
    assert row["sha256"] == built.kernels[place(kernel, LANGUAGE)]["sha256"]


@pytest.mark.usefixtures("checked")
def test_what_ran_are_the_files_that_were_built(built, note):
    recorded = {
        f"{place(kernel, LANGUAGE)}/{file}": digest
        for kernel in KERNELS
        for file, digest in built.kernels[place(kernel, LANGUAGE)]["files"].items()
    }
    note(files=len(recorded), built_by=dict(built.toolchains))
    folders = [built.folder / place(kernel, LANGUAGE) for kernel in KERNELS]
    found = {
        str(f.relative_to(built.folder)): sha256(f)
        for folder in folders
        for f in folder.rglob("*")
        if f.is_file()
    }
    assert found == recorded
