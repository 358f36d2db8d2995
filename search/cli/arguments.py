"""The arguments of `evolve`: parsing, checks and errors."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ir.errors import KernelError
from ir.source import near
from search.cli.model_options import model_options
from search.cli.shapes import positive_number, worded
from search.cli.store_options import store_options
from search.core.settings import POLICY
from search.core.workload import WeightedShape
from search.llm.ledger import LEAST_ANSWER
from search.store.address import word_without_password

EVALUATIONS = 32
LOCAL = "local"  # a cluster that is started on this machine
_ADDRESS = re.compile(r"(ray://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})")
# tokens; half of it, the prompt, holds a kernel and the rules for an answer
LEAST_WINDOW = 16_000

EXAMPLES = """
examples:
  evolve --target={target}
      evolves every kernel of the starter suite; in a checkout the winners go to
      kernels_generated/, elsewhere to ./speciate_out
  evolve --target={target} --kernel={kernel} --evaluations=60 --seed=1 --report={kernel}.html
      evolves one kernel for longer and writes a page that shows how
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """A user's arguments, each well-formed; None if not given."""

    targets: tuple[str, ...]
    kernels: tuple[str, ...]
    problem: str | None
    task: str | None
    reduced: bool
    allow_torch: tuple[str, ...]
    model_new: str | None
    overwrite: bool
    shapes: tuple[WeightedShape, ...]
    dispatch: int | None
    held_out: int | None
    schedule: str | None
    evaluations: int | None
    seconds: float | None
    policy: str | None
    operators: tuple[str, ...]
    target_speedup: float | None
    stagnation: int | None
    memory: bool
    lessons: bool
    models: tuple[str, ...]
    prices: tuple[str, ...]
    max_tokens: int | None
    max_cost: float | None
    window: int | None
    requests: int | None
    answer_tokens: int | None
    effort: str | None
    weigh: str | None
    answer_timeout: float | None
    silence_timeout: float | None
    coach: bool | None
    steps: int | None
    trials: int | None
    replay: str | None
    seed: int | None
    secret: str | None
    workers: int | None
    cluster: str | None
    backends: tuple[str, ...]
    job: str | None
    store: str | None
    artefacts: str | None
    collect_artefacts: bool
    no_store: bool
    resume: str | None
    salvage: str | None
    copy_store: str | None
    promote: bool | None
    out: str | None
    report: str | None
    trace: str | None
    json: bool
    list_targets: bool
    list_kernels: bool
    list_runs: bool
    show: str | None
    version: bool
    words: tuple[str, ...]


def arguments(words: Sequence[str], target: str, kernel: str) -> Arguments:
    """The arguments of a command line. Raises KernelError if it is malformed.

    target, kernel: names for the examples in the help.
    """
    parser = _parser(EXAMPLES.format(target=target, kernel=kernel))
    found = parser.parse_args(words)
    known = [option for action in parser._actions for option in action.option_strings]
    if found.rest:
        hint = near(found.rest[0], known, "every argument has a name; see --help")
        word = word_without_password(found.rest[0])
        raise KernelError(f"`{word}` is not understood", where="arguments", hint=hint)
    return _arguments(found, words)


def _arguments(found: argparse.Namespace, words: Sequence[str]) -> Arguments:
    """The parsed arguments, each checked."""
    return Arguments(
        targets=tuple(dict.fromkeys(found.target)),
        kernels=tuple(dict.fromkeys(found.kernel)),
        problem=found.problem,
        task=found.task,
        reduced=found.reduced,
        allow_torch=_names("--allow-torch", found.allow_torch),
        model_new=found.model_new,
        overwrite=found.overwrite,
        shapes=tuple(worded(text) for text in found.shape),
        dispatch=_whole("--dispatch", found.dispatch, 1),
        held_out=_whole("--held-out", found.held_out, 0),
        schedule=found.schedule,
        evaluations=_whole("--evaluations", found.evaluations, 1),
        seconds=_positive("--seconds", found.seconds),
        policy=found.policy,
        operators=tuple(dict.fromkeys(n for n in found.operators.split(",") if n)),
        target_speedup=_positive("--target-speedup", found.target_speedup),
        stagnation=_whole("--stagnation", found.stagnation, 1),
        memory=found.memory,
        lessons=found.lessons,
        models=tuple(found.model),
        **_of_models(found),
        replay=found.replay,
        seed=_whole("--seed", found.seed, 0),
        secret=found.secret,
        workers=_whole("--workers", found.workers, 1),
        cluster=_address(found.cluster),
        backends=tuple(dict.fromkeys(found.backend)),
        job=found.job,
        store=found.store,
        artefacts=found.artefacts,
        collect_artefacts=found.collect_artefacts,
        no_store=found.no_store,
        resume=found.resume,
        salvage=found.salvage,
        copy_store=found.copy_store,
        promote=found.promote,
        out=found.out,
        report=found.report,
        trace=found.trace,
        json=found.json,
        list_targets=found.list_targets,
        list_kernels=found.list_kernels,
        list_runs=found.list_runs,
        show=found.show,
        version=found.version,
        words=tuple(words),
    )


def _of_models(found: argparse.Namespace) -> dict[str, Any]:
    """The arguments about requests to models."""
    return dict(
        prices=tuple(found.price),
        max_tokens=_whole("--max-tokens", found.max_tokens, 1),
        max_cost=_positive("--max-cost", found.max_cost),
        window=_whole("--context-window", found.context_window, LEAST_WINDOW),
        requests=_whole("--requests", found.requests, 1),
        answer_tokens=_whole("--answer-tokens", found.answer_tokens, LEAST_ANSWER),
        effort=found.effort,
        weigh=found.weigh,
        answer_timeout=_positive("--answer-timeout", found.answer_timeout),
        silence_timeout=_positive("--silence-timeout", found.silence_timeout),
        coach=found.coach,
        steps=_whole("--steps", found.steps, 0),
        trials=_whole("--trials", found.trials, 1),
    )


def example(names: Sequence[str]) -> str:
    """A name for an example: the last one."""
    return names[-1] if names else "NAME"


class _Parser(argparse.ArgumentParser):
    """argparse with KernelError in place of an exit."""

    def error(self, message: str) -> NoReturn:
        hint = "see --help"
        message = " ".join(map(word_without_password, message.split(" ")))
        if unknown := re.search(r"unrecognized arguments: (\S+)", message):
            known = [option for action in self._actions for option in action.option_strings]
            hint = near(unknown[1].partition("=")[0], known, hint)
        raise KernelError(message, where="arguments", hint=hint)


def _parser(examples: str) -> _Parser:
    parser = _Parser(
        prog="evolve",
        description="Evolves kernels into fast, verified implementations for a target.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument(
        "--version",
        action="store_true",
        help="print the versions of the program and its dependencies",
    )
    evolved = parser.add_argument_group("kernels and targets")
    _what(evolved)
    _sizes(evolved)
    _with(evolved)
    _how(parser.add_argument_group("search"))
    model_options(
        parser.add_argument_group(
            "language models (address and key of the endpoint: OPENAI_BASE_URL, OPENAI_API_KEY)"
        )
    )
    store_options(parser.add_argument_group("storage"))
    _results(parser.add_argument_group("results"))
    return parser


def _what(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME",
        help="hardware, by name or by a .toml file; repeatable",
    )
    group.add_argument(
        "--kernel",
        action="append",
        default=[],
        metavar="NAME",
        help="a library kernel, or a .kir file; repeatable (default: the whole starter suite)",
    )
    group.add_argument(
        "--problem",
        metavar="FILE.py",
        help="search for every kernel of a PyTorch module; the file defines Model, get_inputs "
        "and get_init_inputs",
    )
    group.add_argument(
        "--task",
        metavar="FILE.py",
        help="search for every kernel of your own reference; the file defines it, its inputs and "
        "its tests",
    )
    group.add_argument(
        "--job",
        metavar="FILE.toml",
        help="run all searches that a file lists, with one budget; see docs/jobs.md",
    )
    group.add_argument(
        "--reduced",
        action="store_true",
        help="with --problem: use sizes small enough for simulators and interpreters",
    )
    group.add_argument(
        "--allow-torch",
        metavar="OPS",
        help="with --problem or --task: operators that PyTorch may run, separated by commas, by the "
        "names that the error for an unsupported one shows; results list them",
    )


def _sizes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="M=2048,K=512[@WEIGHT]",
        help="sizes to tune for; omitted sizes are those of the kernel's file; repeatable, each with "
        "its weight (default: 1)",
    )
    group.add_argument(
        "--dispatch",
        metavar="K",
        help="with several shapes: find up to K kernels that share them (default: 1)",
    )
    group.add_argument(
        "--held-out",
        metavar="N",
        help="with --dispatch: number of further shapes at which the result is tested at the end "
        "(default: 10)",
    )


def _with(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--schedule", metavar="FILE.sched", help="also start from this schedule (one kernel)"
    )
    group.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="one of the target's backends; repeatable (default: all of them, in one race)",
    )
    group.add_argument(
        "--list-targets",
        action="store_true",
        help="list the targets, and what this machine can do for each",
    )
    group.add_argument(
        "--list-kernels",
        action="store_true",
        help="list the kernels of the library, with signatures and sizes",
    )


def _how(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--evaluations",
        metavar="N",
        help=f"candidates to evaluate for each kernel (default: {EVALUATIONS})",
    )
    group.add_argument(
        "--seconds", metavar="S", help="time limit for each kernel, or for a whole --problem"
    )
    group.add_argument(
        "--policy",
        metavar="NAME[,parameter=value,...]",
        help=f"the rule that selects parents (default: {POLICY}); see docs/search.md",
    )
    group.add_argument(
        "--operators",
        metavar="NAMES",
        default="",
        help="operators that create candidates, separated by commas, or `all` "
        "(default: all but rewrite)",
    )
    group.add_argument(
        "--target-speedup",
        metavar="X",
        help="stop when the best is X times as fast as the first schedule",
    )
    group.add_argument("--stagnation", metavar="N", help="stop after N candidates without a gain")
    group.add_argument(
        "--memory",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="start from the results of earlier runs in the store for the same kernel",
    )
    group.add_argument(
        "--lessons",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="store the lessons of a run, and use those of earlier runs",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        help="random seed; the same seed and evaluations give the same result (default: 0)",
    )
    group.add_argument(
        "--secret",
        metavar="TEXT",
        help="draw the inputs and shapes of checks as another run did; its --show or record has the text",
    )
    group.add_argument(
        "--workers", metavar="N", help="candidates evaluated in parallel (default: one per core)"
    )
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="evaluate on a Ray cluster: `local` starts one on this machine, else HOST:PORT or "
        "ray://HOST:PORT; see docs/scale.md",
    )


def _results(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--promote",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="write winners to kernels_generated/ (default: only in a checkout, with a store, and for "
        "library kernels)",
    )
    group.add_argument(
        "--out",
        metavar="DIR",
        help="write each winner's source, schedule and record to "
        "DIR/KERNEL/TARGET/ (default outside a checkout: speciate_out)",
    )
    group.add_argument(
        "--model-new",
        metavar="FILE.py",
        help="with --problem: write a solution file for KernelBench, whose ModelNew calls the winners "
        "(one target)",
    )
    group.add_argument(
        "--overwrite", action="store_true", help="with --model-new or --out: replace existing files"
    )
    group.add_argument("--report", metavar="FILE.html", help="write a page that shows the search")
    group.add_argument(
        "--trace",
        metavar="FILE.json",
        help="write a timeline of the winner, in Chrome's trace format",
    )
    group.add_argument(
        "--json", action="store_true", help="print one JSON object on stdout instead of a table"
    )


def _whole(option: str, text: str | None, least: int) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}", text) or int(text) < least:
        raise KernelError(
            f"`{text}` is not allowed",
            where=option,
            allowed=f"a whole number from {least}",
            hint=f"for example {option}={max(least, EVALUATIONS)}" if least else "",
        )
    return int(text)


def _address(text: str | None) -> str | None:
    """The address of a cluster."""
    if text is None or text == LOCAL:
        return text
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 1 << 16:
        raise KernelError(
            f"`{text}` is not the address of a cluster",
            where="--cluster",
            allowed="local, HOST:PORT, ray://HOST:PORT",
            hint="`ray start --head` prints its address; see docs/scale.md",
        )
    return text


def _names(option: str, text: str | None) -> tuple[str, ...]:
    """Names from a text with commas, without duplicates."""
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",")))
    if text is not None and "" in names:
        raise KernelError(f"`{text}` lacks a name", where=option, allowed="names with commas")
    return names if text else ()


def _positive(option: str, text: str | None) -> float | None:
    return None if text is None else positive_number(option, text, "90")
