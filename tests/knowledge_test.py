"""The knowledge base: every document is read, and what it shows and cites is there."""

import json
import re

import pytest

from backends.registry import backend_names, target, target_names
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec, parse_workload
from ir.verify import facts
from ir.workload import Workload
from search.prompt.document import document
from search.prompt.knowledge import SHARED, documents, library_of, notes
from search.prompt.retrieval import machine_words, query, retrieve
from testing.samples.samples import KERNELS, workload
from tests.source_tree import FOLDERS, ROOT, words

FEWEST = 15
LINES = (15, 90)
BACKENDS = tuple(name for name in backend_names() if notes(name).is_dir())
FILES = tuple(
    sorted(file for folder in (SHARED, *map(notes, BACKENDS)) for file in folder.glob("*.md"))
)
EFFECTS = "/effects.json"  # by benchmarks/schedule_effects.py
TIMES = ("us", "roofline_us")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
PATH = re.compile(rf"`((?:{'|'.join((*FOLDERS, 'docs'))})/[\w./*-]*)`")
each_file = pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parts[-3]}/{f.stem}")


def read(file):
    return document(file.stem, file.read_text(encoding="utf-8"), str(file))


def blocks(file, kind):
    return [text for found, text in BLOCK.findall(read(file).body) if found == kind]


def given(text):
    """The workload of a block; sizes are 64 where it names none."""
    if "\ntune(" in text:
        return parse_workload(text)
    spec = parse_spec(text)
    return Workload(spec, dict.fromkeys(facts(spec).sizes, 64), ())


def machines(file):
    """The machines that a document holds for."""
    found, backend = read(file), file.parts[-3]
    names = [n for n in target_names() if file.parent == SHARED or backend in target(n).backends]
    held = [target(n) for n in names]
    return [m for m in held if not found.machines or set(found.machines) & machine_words(m)]


@each_file
def test_a_document_is_read_and_is_neither_a_line_nor_a_book(file):
    found = read(file)
    length = found.body.count("\n")
    assert LINES[0] <= length <= LINES[1], f"{length} lines"
    text = [line for line in found.body.splitlines() if not line.startswith("|")]
    assert max(map(len, text)) <= 120
    assert machines(file), "no target is one of its machines"


@each_file
def test_what_it_cites_is_there(file):
    found = read(file)
    cited = [s for s in found.sources if s.split("/")[0] in (*FOLDERS, "docs")]
    cited += [p.rstrip("/") for p in PATH.findall(found.body)]
    missing = [p for p in cited if not any(ROOT.glob(p))]
    prose = BLOCK.sub("", found.body)
    missing += [
        p
        for p in LINK.findall(prose)
        if not p.startswith("https://") and not (file.parent / p).exists()
    ]
    assert not missing, f"not there: {missing}"


@each_file
def test_its_python_compiles(file):
    for text in blocks(file, "python"):
        compile(text, str(file), "exec")


@each_file
def test_its_specs_are_specs(file):
    for text in blocks(file, "kir"):
        assert given(text).spec.equations


@each_file
def test_its_schedules_lower_on_a_machine_that_it_holds_for(file):
    here = {w.spec.name: w for w in map(given, blocks(file, "kir"))}
    for text in blocks(file, "sched"):
        schedule = parse_schedule(text)
        assert schedule.kernel in (*here, *KERNELS), f"no spec is called {schedule.kernel}"
        found = here.get(schedule.kernel) or workload(schedule.kernel)
        faults = [fault(found, schedule, m) for m in machines(file)]
        assert None in faults, "\n".join(map(str, faults))


def fault(found, schedule, machine):
    try:
        lower(found.spec, schedule, machine, found.tune)
    except KernelError as error:
        return error
    return None


def recorded_us(found):
    """The times of the effects that a document cites, to two decimals."""
    texts = [(ROOT / s).read_text(encoding="utf-8") for s in found.sources if s.endswith(EFFECTS)]
    rows = [row for text in texts for row in json.loads(text)["rows"]]
    return {f"{row[name]:.2f}" for row in rows for name in TIMES if row.get(name)}


def told_us(body):
    """The times with two decimals that a text tells: before `us`, and in columns headed by it."""
    columns = ()
    for line in body.splitlines():
        cells = [c.strip() for c in line.split("|")]
        if not line.startswith("|"):
            columns = ()
        elif not columns:
            columns = tuple(n for n, c in enumerate(cells) if re.search(r"\bus\b", c))
        yield from (cells[n] for n in columns if re.fullmatch(r"\d+\.\d\d", cells[n]))
        yield from re.findall(r"(?<![\d.])(\d+\.\d\d) us\b", line)


CITING = tuple(f for f in FILES if any(s.endswith(EFFECTS) for s in read(f).sources))


@pytest.mark.parametrize("file", CITING, ids=lambda f: f.stem)
def test_simulated_times_are_those_that_are_recorded(file):
    found = read(file)
    assert set(told_us(found.body)) <= recorded_us(found)


def test_times_are_found_in_texts_and_in_columns():
    text = "takes 1.25 us\n\n| a | us | b |\n| --- | --- | --- |\n| 2.00 | 3.50 | 4.00 |\n5.00\n"
    assert list(told_us(text)) == ["1.25", "3.50"]


def test_blocks_are_of_a_kind_that_is_looked_at():
    known = {"sched", "kir", "python", "text", "cpp", "sh"}
    for file in FILES:
        assert {kind for kind, _ in BLOCK.findall(read(file).body)} <= known, file


def test_there_are_backends_with_notes():
    assert BACKENDS


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_with_notes_has_enough_and_of_several_kinds(backend):
    found = list(documents(notes(backend)))
    assert len(found) >= FEWEST
    assert len({d.kind for d in found}) >= 3
    assert len({d.title for d in library_of(backend)}) == len(library_of(backend))


def test_what_holds_for_all_names_no_target_and_no_backend():
    pattern = words({*backend_names(for_tests=True), *target_names(for_tests=True)} - {"null"})
    wrong = [
        f"{f.name}: {m[0]}"
        for f in SHARED.glob("*.md")
        for m in [pattern.search(f.read_text(encoding="utf-8"))]
        if m
    ]
    assert not wrong


@pytest.mark.parametrize("name", target_names())
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_finds_something_of_its_own_on_every_target(kernel, name):
    machine = target(name)
    library = library_of(machine.backends[0])
    found = retrieve(library, query(workload(kernel).spec, machine, surface="schedule"), 6000)
    own = {f.stem for f in notes(machine.backends[0]).glob("*.md")}
    assert len(found.taken) >= (3 if own else 2)
    assert 0 < found.tokens <= 6000
    assert not own or own & {t.document.name for t in found.taken}
