"""Evolve, compile and load, as a user calls them."""

import copy
import pickle
import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn

import speciate
from backends.registry import backend_for, target
from ir.digest import text_digest
from ir.errors import KernelError
from search.cli import searched
from search.cli.session import Session
from search.cli.suite import kernel_problem
from search.evaluator.testing.fake_cluster import FakeCluster, ThreadSlot, engage, node
from search.record.program import read_program, write_program
from speciate.here import target_here
from speciate.records import LIBRARY, Records
from speciate.subject import subject

SCALED = """def scaled(x: f32[M, K], g: f32[K]) -> f32[M, K]:
    \"\"\"Scale the columns of x.\"\"\"
    y[m, k] = x[m, k] * g[k]
    return y
"""
X, G = torch.randn(6, 40, generator=torch.Generator().manual_seed(1)), torch.arange(40.0)


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    run = speciate.evolve(
        SCALED,
        (X, G),
        evaluations=1,
        workers=1,
        quiet=True,
        records=folder / "records",
        store=str(folder / "store.db"),
    )
    return folder, run


def test_a_search_tells_where_its_seconds_went(evolved):
    """Calls are timed here before it and after it."""
    _, run = evolved
    calls = {f"{when}: {what} calls" for when in ("before", "after") for what in ("build", "time")}
    wanted = {"start", "import", "ways", "store", "open workers", "search", "choose", "build"}
    assert wanted <= set(run.phases) and "before: time calls" in run.phases
    assert set(run.phases) - wanted - calls <= {
        *("other", "prepare", "close workers", "records", "report"),
        *(f"{when}: wait for what times calls" for when in ("before", "after")),
    }


def test_a_search_can_be_on_a_cluster(tmp_path, monkeypatch):
    """What it finds is for `search/evolve_cluster_test.py`: times are measured here, and differ."""
    cluster = FakeCluster(node("n0"), making=lambda resources, without: ThreadSlot("n0"))
    engage(monkeypatch, cluster)
    run = speciate.evolve(
        SCALED,
        (X, G),
        evaluations=2,
        workers=1,
        cluster="lab:6379",
        quiet=True,
        records=tmp_path / "records",
        store=str(tmp_path / "store.db"),
    )
    assert cluster.slots
    torch.testing.assert_close(run(X, G), X * G)
    with pytest.raises(KernelError, match="--cluster"):
        speciate.evolve(SCALED, (X, G), cluster="lab")


def test_the_result_of_a_search_is_called_saved_and_shown(evolved, tmp_path):
    _, run = evolved
    torch.testing.assert_close(run(X, G), X * G)
    assert isinstance(run, speciate.CompiledModule) and "scaled" in run.source
    run.save(tmp_path / "saved")
    assert torch.equal(speciate.load(tmp_path / "saved")(X, G), X * G)
    run.report(tmp_path / "page.html")
    assert "scaled" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(KernelError, match="cannot be written"):
        run.report(tmp_path / "none" / "page.html")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_copies_of_it_have_the_report_too(evolved, copied, tmp_path):
    _, run = evolved
    other = copied(run)
    assert isinstance(other, speciate.Evolved) and other.page == run.page
    assert torch.equal(other(X, G), run(X, G))


def test_compile_takes_the_record_that_a_search_wrote(evolved):
    folder, run = evolved
    record = next((folder / "records").glob("*/cpu"))
    again = speciate.compile(SCALED, (X, G), records=folder / "records")
    assert list(again.sources.values()) == [(record / "kernel.cc").read_text(encoding="utf-8")]
    assert torch.equal(torch.compile(again, fullgraph=True, backend="aot_eager")(X, G), X * G)


def test_a_record_that_is_slower_in_a_call_than_the_seed_schedule_is_passed_over(evolved, tmp_path):
    folder, run = evolved
    shutil.copytree(folder / "records", tmp_path, dirs_exist_ok=True)
    (file,) = tmp_path.glob("programs/*/*.toml")
    found = read_program(file)
    (kernel,) = found.kernels
    (stored,) = tmp_path.glob("*/cpu/kernel.cc")
    passed_over = text_digest(stored.read_text(encoding="utf-8"))
    write_program(tmp_path, replace(found, kernels=(replace(kernel, passed_over=passed_over),)))
    again = speciate.compile(SCALED, (X, G), records=tmp_path)
    seeded = speciate.compile(SCALED, (X, G), records=tmp_path / "none")
    assert again.sources == seeded.sources and torch.equal(again(X, G), X * G)


def test_a_schedule_of_a_record_is_used_and_one_that_was_edited_is_refused(evolved, tmp_path):
    folder, _ = evolved
    for file in (folder / "records").rglob("*"):
        if file.is_file():
            to = tmp_path / file.relative_to(folder / "records")
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(file.read_bytes())
    schedule = next(tmp_path.rglob("schedule.sched"))
    schedule.write_text(schedule.read_text() + "\n# mine\n")
    with pytest.raises(KernelError, match=r"schedule.sched.*edited by hand"):
        speciate.compile(SCALED, (X, G), records=tmp_path)


def test_compile_takes_the_project_s_record_of_a_library_s_kernel(tmp_path):
    x = torch.randn(512, 256)
    run = speciate.compile("softmax", (x,), target="cpu", records=tmp_path)
    torch.testing.assert_close(run(x), torch.softmax(x, 1))
    found, machine = subject("softmax", (x,)), target("cpu")
    knows = Records([LIBRARY], machine, backend_for(machine), found.given)
    known = knows(found.made.spec)
    folder = knows.used[found.made.spec.name]
    lines = (folder / "schedule.sched").read_text(encoding="utf-8").splitlines()[1:]
    assert folder.parent.name == "softmax" and str(known.schedule).splitlines()[1:] == lines


def test_functions_and_modules_are_compiled(tmp_path):
    x = torch.randn(4, 12)
    run = speciate.compile(lambda x: torch.relu(x) + 1, (x,), target="null", records=tmp_path)
    torch.testing.assert_close(run(x), torch.relu(x) + 1)
    module = nn.Linear(12, 5).requires_grad_(False)
    run = speciate.compile(module, (x,), target="null", records=tmp_path)
    torch.testing.assert_close(run(x), module(x))
    module.weight.zero_()
    torch.testing.assert_close(run(x), module(x))


XS, WS = torch.randn(6, 24, generator=torch.Generator().manual_seed(2)), torch.eye(24) * 2.0


def apart(x, w):
    return torch.softmax(x, 1), w @ w


def two_kernels(tmp_path, **more):
    """Evolves a call of two kernels."""
    return speciate.evolve(
        apart,
        (XS, WS),
        target="npu",
        evaluations=1,
        workers=1,
        quiet=True,
        records=tmp_path / "records",
        store=str(tmp_path / "store.db"),
        **more,
    )


def test_a_kernel_that_cannot_be_searched_for_keeps_its_seed_schedule(tmp_path, monkeypatch):
    seen = []

    def first_fails(asked, workload, *more):
        seen.append(workload.spec.name)
        if len(seen) == 1:
            raise KernelError("no search of this one")
        return kernel_problem(asked, workload, *more)

    monkeypatch.setattr(searched, "kernel_problem", first_fails)
    run = two_kernels(tmp_path)
    assert len(seen) > 1 and run.faults == {seen[0]: "no search of this one"}
    torch.testing.assert_close(run(XS, WS), apart(XS, WS))


def test_a_search_that_fails_ends_no_other(tmp_path, monkeypatch):
    tried = []

    def first_fails(session, asked, known):
        tried.append(asked.title)
        if len(tried) == 1:
            raise KernelError("its workers ended")
        return search(session, asked, known)

    search = Session.search
    monkeypatch.setattr(Session, "search", first_fails)
    run = two_kernels(tmp_path)
    assert len(tried) > 1 and run.faults == {tried[0]: "its workers ended"}
    assert list((tmp_path / "records").glob("*/npu/kernel.*"))
    torch.testing.assert_close(run(XS, WS), apart(XS, WS))


def test_where_all_searches_fail_the_first_fault_is_raised(tmp_path, monkeypatch):
    def fails(session, asked, known):
        raise KernelError("its workers ended")

    monkeypatch.setattr(Session, "search", fails)
    with pytest.raises(KernelError, match="its workers ended"):
        two_kernels(tmp_path)


def test_a_record_that_cannot_be_used_ends_no_search(tmp_path):
    first = two_kernels(tmp_path)
    for schedule in (tmp_path / "records").rglob("schedule.sched"):
        schedule.write_text(schedule.read_text() + "\n# mine\n")
    again = two_kernels(tmp_path)
    assert not first.faults and again.faults
    assert all("edited by hand" in fault for fault in again.faults.values())
    torch.testing.assert_close(again(XS, WS), first(XS, WS))


def test_the_target_is_where_the_tensors_are():
    assert target_here((X, {"g": G}), 3) == "cpu"
    with pytest.raises(KernelError, match="several devices: cpu, meta"):
        target_here(X, X.to("meta"))
    with pytest.raises(KernelError, match="no target is measured on `meta` here"):
        target_here(X.to("meta"))


@pytest.mark.parametrize(
    ("named", "args", "words"),
    [
        ("sofmax", (X,), "no kernel `sofmax` in the library"),
        ("none.kir", (X,), "`none.kir` cannot be read"),
        (SCALED, (X,), "`scaled` is given 1 tensors"),
        (SCALED, X, "the arguments are Tensor"),
        (SCALED, (X, G[None]), "`g` is no tensor of 1 dimensions"),
    ],
)
def test_what_cannot_be_compiled_is_told(named, args, words):
    with pytest.raises(KernelError, match=words):
        speciate.compile(named, args, target="cpu")


def test_what_cannot_be_searched_is_told_before_a_search(tmp_path):
    with pytest.raises(KernelError, match="no target `gpu9`"):
        speciate.evolve(SCALED, (X, G), target="gpu9", quiet=True)
    with pytest.raises(KernelError, match="--seconds"):
        speciate.evolve(SCALED, (X, G), seconds=-1, quiet=True)
    assert not list(tmp_path.iterdir())
