"""Steps: actions of a model within one exchange, before its answer.

It can compile, check or profile a draft, read documents, and list legal edits. It calls functions
if its endpoint supports that; otherwise its answer begins with STEP. A draft is untrusted code and
is evaluated like any candidate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.llm.exchange import Answer, Call, Tool
from search.loop.context import Context, GaveUp
from search.prompt.analysis import diagnosis, raw
from search.prompt.budget import excerpt
from search.prompt.legal import legal_edits, sizes_of
from search.prompt.synthesis import Writer

TOKENS = 200_000  # of one exchange, after which no more steps are taken
MOST = 12_000  # characters of a result
LINES = 8  # source lines shown with a fault
DRAFTS = ("compile", "check", "profile")
INTERFACE = "interface"
OVER = "No more steps: answer now."
_STEP = re.compile(r"\s*STEP (\w+)[ \t]*([^\n]*)\n?")
_PLACE = re.compile(
    r"(?:^|[\s/\"'])([\w.-]+)(?::|, line )(\d+)(?::\d+)?[:,]|\bline (\d+)\b", re.MULTILINE
)
_HEADERS = (".h", ".hpp", ".cuh")  # files other than the source
EDITS = "edit blocks, as in an answer"
TOOLS = (
    Tool("compile", "Compile a draft: all that is wrong with it.", "edits", EDITS),
    Tool("check", "Compile a draft and compare its results with the reference.", "edits", EDITS),
    Tool("profile", "The same, with its time and what bounds it.", "edits", EDITS),
    Tool(
        "read",
        "Read a document of the knowledge base, or the language's interface.",
        "name",
        f"the name of a document, or `{INTERFACE}`; empty for the list of documents",
    ),
    Tool("edits", "List every single change that the parent's schedule admits."),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A requested action."""

    name: str
    argument: str
    id: str = ""  # of the call; empty if it is written as text

    @property
    def said(self) -> str:
        """The step as one text."""
        return f"{self.name}\n{self.argument}"


def steps_of(answer: Answer) -> tuple[Step, ...]:
    """The steps that an answer requests; empty if it is a final answer."""
    if answer.calls:
        return tuple(Step(c.name, _argument(c), c.id) for c in answer.calls)
    found = _STEP.match(answer.text)
    if found is None:
        return ()
    rest = answer.text[found.end() :]
    return (Step(found[1], rest if found[1] in DRAFTS else found[2].strip()),)


def _argument(call: Call) -> str:
    """The first text among a call's arguments, under any name. Arguments that are not JSON are
    taken as they are."""
    try:
        table = json.loads(call.arguments or "{}")
    except ValueError:
        return call.arguments
    texts = [v for v in table.values() if isinstance(v, str)] if isinstance(table, dict) else []
    return texts[0] if texts else ""


def guide(most: int) -> str:
    """The description of steps for a model."""
    lines = "".join(f"- `STEP {_usage(t)}`: {t.description}\n" for t in TOOLS)
    return (
        f"\n# Steps\n\nBefore you answer you may take up to {most} steps, one in each message. Call "
        "the function of that name where you can call functions. Else write a message that begins "
        f"with one of these lines, and nothing else:\n{lines}"
        "Edits of a draft stand below the line, in the form of an answer. An answer without such a "
        "line is final.\n"
    )


def _usage(tool: Tool) -> str:
    return f"{tool.name} NAME" if tool.argument == "name" else tool.name


@dataclass(frozen=True, slots=True)
class Workbench:
    """Runs steps. judge: evaluates a draft; its result is None if time is over."""

    judge: Callable[[Candidate], Evaluated | None]

    def result(
        self,
        step: Step,
        context: Context,
        writer: Writer,
        draft: Callable[[str], Candidate | GaveUp],
        source: Callable[[Candidate], str],
    ) -> str:
        """The result of a step, as told to the model. draft: makes the candidate of edits."""
        if step.name in DRAFTS:
            made = draft(step.argument)
            if isinstance(made, GaveUp):
                return f"The draft is no candidate:\n{made.reason}"
            told = self._tried(step.name, made, context, writer, source)
            trial = made.origin.trial
            return excerpt(f"With {trial}: {told}" if trial else told, MOST)
        if step.name == "read":
            return excerpt(_read(step.argument, writer), MOST)
        if step.name == "edits":
            return excerpt(_edits(context), MOST)
        known = ", ".join(tool.name for tool in TOOLS)
        return f"There is no step `{step.name}`; there are: {known}."

    def _tried(
        self,
        name: str,
        made: Candidate,
        context: Context,
        writer: Writer,
        source: Callable[[Candidate], str],
    ) -> str:
        outcome = self.judge(made)
        if outcome is None:
            return "The time of the search is over."
        if isinstance(outcome, Failure) and outcome.slow and name != "compile":
            return f"It compiles. It was not checked: {outcome.reason}."
        if isinstance(outcome, Failure):
            if name == "compile" and outcome.stage not in ("verify", "emit", "build"):
                return "It compiles."
            told = with_lines(outcome.reason or outcome.headline, made.source or source(made))
            return f"It failed at {outcome.stage} ({outcome.kind}):\n{told}"
        if name == "compile":
            return "It compiles."
        if name == "check":
            return f"It compiles, and its results are right (by {outcome.correct_by})."
        return _profile(outcome, made.source is not None, context, writer)


def _profile(outcome: Evaluation, edited: bool, context: Context, writer: Writer) -> str:
    lines = [*diagnosis(outcome, writer.roofline_us, context.machine, edited)]
    before = context.parents[0].outcome
    if isinstance(before, Evaluation) and before.time_kind == outcome.time_kind:
        lines.append(f"Its parent takes {before.us:.4g} us.")
    return "\n".join((*lines, *raw(outcome, edited)))


def _read(name: str, writer: Writer) -> str:
    wanted = name.strip().strip("`")
    if wanted == INTERFACE:
        return writer.interface or f"{writer.language} has no interface of its own."
    if not wanted:
        return f"Documents, beside `{INTERFACE}`:\n{writer.library.index}"
    try:
        found = writer.library.named(wanted)
    except KernelError as error:
        return str(error)
    return f"{found.title}\n\n{found.body}"


def _edits(context: Context) -> str:
    parent = context.parents[0]
    every = sizes_of(context.sizes, [shape.sizes for shape in context.workload])
    try:
        found = legal_edits(parent.variant, parent.schedule, context.machine, every)
    except KernelError as error:
        return str(error)
    return "\n".join((*found.lines, *(f"not legal: {line}" for line in found.refused)))


def with_lines(reason: str, source: str) -> str:
    """A reason with the source lines that it names and does not show itself."""
    lines = source.split("\n")
    places = [(m[1] or "", int(m[2] or m[3])) for m in _PLACE.finditer(reason)]
    numbers = dict.fromkeys(n for file, n in places if not file.endswith(_HEADERS))
    named = [n for n in numbers if 1 <= n <= len(lines) and not _shows(reason, lines[n - 1])]
    shown = "".join(f"{n:5} | {lines[n - 1]}\n" for n in named[:LINES])
    return f"{reason}\n\nLines of the source that it names:\n{shown}" if shown else reason


def _shows(reason: str, line: str) -> bool:
    return len(line.strip()) > 3 and line.strip() in reason
