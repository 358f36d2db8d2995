"""Prompt synthesis: writes the whole prompt for a brief, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ir.lower.available import available
from ir.lower.verb_table import VERBS
from ir.machine import Machine
from ir.workload import Sizes
from search.core.evaluation import Evaluation
from search.core.settings import TRIALS, WINDOW
from search.core.transferred import Transferred
from search.loop.context import Context, Parent
from search.prompt.analysis import diagnosis, raw
from search.prompt.brief import SCHEDULE, VARIANT, Brief
from search.prompt.budget import (
    Fitted,
    Section,
    excerpt,
    fit,
    knowledge_tokens,
    prompt_tokens,
    shortened,
)
from search.prompt.history import result
from search.prompt.knowledge import Library
from search.prompt.languages import grammar, values
from search.prompt.legal import legal_edits, sizes_of
from search.prompt.regions import Regions
from search.prompt.render import rendered
from search.prompt.retrieval import query, retrieve

FRAME = 40  # tokens of a text's name and fences
PARAMETER_USES = {  # an example of each surface, for the parameter `size`
    "schedule": "tile(n, size=$size)",
    "equations": "tile(n, size=$size)",
    "source": "CHUNK = $size",
}
FENCES = {SCHEDULE: "python", VARIANT: "python"}


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two messages to a model, with their contents."""

    system: str
    user: str
    knowledge: tuple[str, ...]  # names of the documents
    dropped: tuple[str, ...]  # sections that the budget removed
    cut: tuple[str, ...]  # sections that the budget shortened


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes prompts for one search."""

    kernel: str
    machine: Machine
    sizes: Sizes
    checks: tuple[Sizes, ...]  # sizes of checks
    roofline_us: float
    language: str  # language of the backend's sources
    library: Library  # the knowledge base
    interface: str = ""  # what a source of the backend may use
    trials: int = TRIALS  # parameter combinations of an answer that are timed
    # Largest number of tokens of a prompt, and of its documents.
    tokens: int = prompt_tokens(WINDOW)
    knowledge: int = knowledge_tokens(WINDOW)

    def write(self, context: Context, brief: Brief, regions: Regions) -> Prompt:
        """The prompt for a brief. It depends only on the arguments."""
        parent = context.parents[0]
        lines, figures = self._analysis(parent)
        found = retrieve(
            self.library,
            query(
                parent.variant,
                self.machine,
                parent.schedule,
                " ".join(lines) or result(parent.outcome, self.machine.name),
                brief.surface,
            ),
            self.knowledge,
        )
        brief, combined = self._fitting(brief, _combined(context, brief))
        sections = [
            self._task(brief),
            Section("machine", rendered("machine", machine=self.machine), 8),
            self._kernel(brief),
            *self._others(context, brief, combined),
            *self._told("analysis", 7.6, lines=lines, figures=figures, timeline=brief.timeline),
            *self._found(brief),
            *self._rules(context, brief),
            *self._told("knowledge", 4, text=found.text),
            self._constraints(),
            self._format(brief),
        ]
        system = rendered("system", language=self.language, regions=regions)
        fitted = fit(sections, self.tokens)
        return Prompt(
            system=system,
            user=fitted.text,
            knowledge=tuple(t.document.name for t in found.taken),
            dropped=fitted.dropped,
            cut=fitted.cut,
        )

    def refusal(self, reason: str) -> str:
        """The message to a model about a rejected answer."""
        return rendered("refusal", reason=excerpt(reason))

    def _fitting(self, brief: Brief, other: dict[str, str]) -> tuple[Brief, dict[str, str]]:
        """The brief and the texts of the other kernel. Read-only texts are cut if they do not fit
        with the required ones."""
        bare = self._kernel(replace(brief, shown={}))
        head = next(self._found(brief))
        whole = (self._task(brief), bare, head, self._constraints(), self._format(brief))
        texts = {(0, n): t for n, t in brief.shown.items()}
        texts |= {(1, n): t for n, t in other.items()}
        room = self.tokens - Fitted(whole, (), ()).tokens - FRAME * (len(texts) + 1)
        cut = shortened(texts, room)
        shown, other = ({n: t for (of, n), t in cut.items() if of == which} for which in (0, 1))
        return replace(brief, shown=shown), other

    def _task(self, brief: Brief) -> Section:
        text = rendered(
            "task",
            brief=brief,
            kernel=self.kernel,
            machine=self.machine,
            failure=brief.failure,
            reason=excerpt(brief.failure.reason) if brief.failure else "",
            external=brief.transferred,
        )
        return Section("task", text, required=True)

    def _kernel(self, brief: Brief) -> Section:
        files = {**brief.files, **brief.shown}
        return Section("kernel", self._files("The kernel", files, brief), required=True)

    def _files(self, title: str, files: dict[str, str], brief: Brief) -> str:
        fences = {name: FENCES.get(name, self.language.lower()) for name in files}
        return rendered("kernel", title=title, files=files, fences=fences, brief=brief)

    def _others(
        self, context: Context, brief: Brief, combined: dict[str, str]
    ) -> Iterator[Section]:
        """The second parent, which is required, or the kernel to translate."""
        found, title = combined, ""
        if combined:
            title = f"The other kernel: {result(context.parents[1].outcome, self.machine.name)}"
        elif brief.transferred is not None:
            found = {
                VARIANT: brief.transferred.variant,
                SCHEDULE: brief.transferred.schedule,
            }
            source = {f"kernel of {self._elsewhere(brief.transferred)}": brief.transferred.source}
            if brief.transferred.source and brief.surface == "source":
                found = source
            elif brief.transferred.edited:  # the source differs from its equations and schedule
                found |= source
            title = f"The kernel for {self._elsewhere(brief.transferred)}"
        if found:
            text = rendered(
                "kernel",
                title=title,
                files=found,
                fences=dict.fromkeys(found, ""),
                brief={"files": {}},
            )
            yield Section("other", text, 9, required=bool(combined))

    def _elsewhere(self, found: Transferred) -> str:
        """The name of another machine, or of another language for this machine."""
        return found.backend if found.target == self.machine.name else found.target

    def _analysis(self, parent: Parent) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The sentences about the figures of a correct parent, and the figures."""
        outcome, edited = parent.outcome, parent.candidate.source is not None
        if not isinstance(outcome, Evaluation):
            return (), ()
        said = diagnosis(outcome, self.roofline_us, self.machine, edited)
        return said, raw(outcome, edited)

    def _found(self, brief: Brief) -> Iterator[Section]:
        """The sections about the search: the best, the next fastest, the lineage and the children
        of the parent, failures, and requests."""
        known = brief.history
        head = rendered("found", history=known, machine=self.machine)
        yield Section("found", head, required=True)
        if known.texts:
            fences = {name: FENCES.get(name, self.language.lower()) for name in known.texts}
            text = rendered("best", history=known, fences=fences)
            yield Section("best", text, 8, cuttable=True)
        for name, priority, title, steps in (
            ("ranked", 6.5, "The next fastest, against the fastest", known.ranked),
            ("lineage", 5, "How the kernel above came about, step by step", known.lineage),
            ("siblings", 5.5, "What else was made of the kernel above", known.siblings),
            ("wrong", 6, "What was made of the kernel above and failed", known.wrong),
        ):
            if steps:
                text = rendered("steps", title=title, steps=steps)
                yield Section(name, text, priority, cuttable=True)
        if known.requested or known.refused:
            yield Section("requests", rendered("requests", history=known), 7, cuttable=True)

    def _rules(self, context: Context, brief: Brief) -> Iterator[Section]:
        """The rules for an answer on a surface."""
        if brief.surface == "source":
            yield from self._told("interface", 8.5, text=self.interface)
            return
        if brief.surface == "equations":
            yield Section("grammar", grammar(), 8.5, cuttable=True)
        verbs = [VERBS[name] for name in available(self.machine)]
        yield from self._told("verbs", 7.5, verbs=verbs, kinds=values(verbs, self.machine))
        if brief.surface == "schedule":
            parent = context.parents[0]
            every = sizes_of(context.sizes, [shape.sizes for shape in context.workload])
            edits = legal_edits(parent.variant, parent.schedule, self.machine, every)
            yield from self._told("edits", 8.5, edits=edits if edits.lines else None)

    def _constraints(self) -> Section:
        text = rendered(
            "constraints",
            checks=[_sizes(s) for s in self.checks],
            sizes=_sizes(self.sizes),
        )
        return Section("constraints", text, required=True)

    def _format(self, brief: Brief) -> Section:
        first = next(iter(brief.files))
        use = PARAMETER_USES[brief.surface]
        text = rendered("format", brief=brief, example=first, trials=self.trials, use=use)
        return Section("format", text, required=True)

    def _told(self, name: str, priority: float, **values: object) -> Iterator[Section]:
        """The section of a template, if it has contents."""
        if any(values.values()):
            yield Section(name, rendered(name, **values), priority, cuttable=True)


def _combined(context: Context, brief: Brief) -> dict[str, str]:
    """The texts of the second parent by name; empty if there is none to combine with.

    They always include its source, because a schedule does not describe an edited source.
    """
    if brief.kind != "combine" or len(context.parents) < 2:
        return {}
    other = context.parents[1].candidate
    texts = {VARIANT: other.variant, SCHEDULE: other.schedule}
    source = other.source or brief.other
    names = (name for name in (*brief.files, *brief.shown) if name not in texts)
    return texts | ({next(names, "source"): source} if source else {})


def _sizes(sizes: Sizes) -> str:
    return ", ".join(f"{name}={number}" for name, number in sizes.items())
