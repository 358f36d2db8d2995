"""The searches of a call as one job, whose budget goes to kernels by the time that each can
save."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ir.digest import spec_digest, text_digest
from ir.errors import KernelError
from ir.sizes import shape
from ir.spec import Spec, Tensor
from search.cli.arguments import EVALUATIONS, Arguments
from search.cli.job_file import Job, JobSearch
from search.cli.promote import winner_source
from search.cli.session import Ended
from search.cli.suite import Problem, Suite
from search.core.evaluation import Failure
from search.loop.rounds import ROUND, JobBudget, Share
from search.record.program import KernelUse, ProgramRecord
from search.whole.plan import CallPlan, KernelSeed, Say
from search.whole.timed import KernelTexts
from search.whole.times import MEASURED, WholeTimes
from search.whole.ways import Way

# Candidates of a round for each worker, if times are measured. At the end of a round workers wait
# for the last one. At its start they may have to open the device, which takes as long as a few
# candidates.
ROUND_OF_TIMED = 3


def network_job(
    name: str, searches: Sequence[JobSearch], asked: Arguments
) -> tuple[Job, Arguments]:
    """The job of a network's kernels, and the arguments without the limits that the job has.

    The budget is the given seconds in total, and the given evaluations for each kernel of a call.
    All kernels share it.
    """
    evaluations, least = asked.evaluations, ROUND
    if searches:
        batch = max(each.problem.settings.batch for each in searches)
        timed = any(each.share.timed for each in searches)
        least = batch * (ROUND_OF_TIMED if timed else 1)
    if evaluations is None and asked.seconds is None:
        evaluations = EVALUATIONS
    of_call = sum(each.share.weight == 1.0 for each in searches)
    job = Job(
        name,
        tuple(searches),
        JobBudget(
            None if evaluations is None else evaluations * of_call,
            asked.seconds,
            least,
        ),
        memory=asked.memory,
        lessons=asked.lessons,
        held_out=asked.held_out,
        seed=asked.seed or 0,
        target_files=tuple(t for t in asked.targets if t.endswith(".toml")),
    )
    return job, replace(asked, evaluations=None, seconds=None)


def kernel_search(problem: Problem, seed: KernelSeed, workers: int) -> JobSearch:
    """The search for a kernel of a call, which starts from the kernel's seed. workers: number of
    evaluating workers."""
    settings = replace(problem.settings, rounded=seed.rounded)
    if seed.timed:  # measured times and searches are not reproducible anyway
        settings = replace(settings, batch=max(settings.batch, workers))
    share = Share(
        weight=seed.weight,
        network=settings.target,
        calls=seed.calls,
        estimate_us=seed.us,
        timed=seed.timed,
    )
    if not settings.workload and settings.backends[0] == seed.texts.backend:
        settings = replace(settings, seed_schedule=seed.texts.schedule)
    return JobSearch(replace(problem, settings=settings), share)


def measured(found: Suite, say: Say) -> Suite:
    """A module's calls, with measured times if there is a device."""
    assert found.module is not None, "there are calls"
    if found.module.sized:
        return found
    networks = found.module.networks
    calls = {
        name: replace(call, plan=call.plan.timed(networks, say))
        for name, call in found.calls.items()
    }
    return replace(found, calls=calls)


def begun(found: Suite, asked: Arguments, workers: int) -> tuple[Job, Arguments]:
    """The searches for a module's calls as a job, and the arguments without the limits that the job
    has.

    workers: number of evaluating workers.
    """
    assert found.module is not None, "there are calls"
    searches = [
        kernel_search(call.problem(seed.spec), seed, workers)
        for call in found.calls.values()
        for seed in call.plan.seeds()
    ]
    return network_job(found.module.spec.name, searches, asked)


def require_same(found: Suite, problems: Sequence[Problem], job: str) -> None:
    """Raises KernelError if a stored job is not for a module's calls."""
    assert found.module is not None, "there are calls"
    known = {(p.settings.target, p.settings.spec) for p in found.problems}
    for problem in problems:
        if (problem.settings.target, problem.settings.spec) not in known:
            raise KernelError(
                f"job `{job}` searches for {problem.title}, which is no kernel of this file",
                where=str(found.module.file),
                hint="name the file and the targets that it was started with, or start a new job",
            )


@dataclass(frozen=True, slots=True)
class FoundCall:
    """The result of a search for a call."""

    plan: CallPlan
    way: Way  # its best partition
    after: WholeTimes | None  # measured with the found kernels
    kernels: tuple[KernelUse, ...]  # in the order of their first step; empty if one is missing

    @property
    def before(self) -> WholeTimes | None:
        """Measured with seed schedules, in the best partition for these."""
        return self.plan.measured.get(0)

    def us(self, times: Callable[[KernelUse], float]) -> float:
        """The microseconds of a call: the sum over its steps."""
        return sum(kernel.calls * times(kernel) for kernel in self.kernels)


def found_call(plan: CallPlan, ended: Sequence[Ended], say: Say) -> FoundCall:
    """The best partition with the found kernels, measured if there is a device.

    ended: searches, including those for other targets or without a correct candidate.
    """
    target = plan.served[0].machine.name
    mine = [e for e in ended if e.outcome.settings.target == target]
    right = {e.outcome.settings.kernel: e for e in mine if e.outcome.best is not None}
    wrong = {e.outcome.settings.kernel for e in mine if _refuted(e)}
    texts = {name: winner_texts_of(each) for name, each in right.items()}
    us = {n: e.outcome.evaluation.us for n, e in right.items() if e.outcome.evaluation is not None}
    able = [w for w in plan.ways if all(n in right or _seeded(plan, n, wrong) for n in w.calls)]
    if not able:
        return FoundCall(plan, plan.ways[0], None, ())
    found = plan.only(able).chosen(texts, us, say)
    uses = tuple(
        _passed_over(plan, found.way, spec, texts[spec.name])
        if spec.name in found.passed_over
        else _use(plan, found.way, spec, right.get(spec.name))
        for spec in found.way.call.kernels()
    )
    return FoundCall(plan, found.way, found.times, uses)


def require_right(call: FoundCall, ended: Sequence[Ended]) -> None:
    """Raises KernelError if a call needs a kernel without a correct candidate. ended: as in
    `found_call`."""
    for each in ended:
        if each.outcome.settings.kernel in call.way.calls and _refuted(each):
            raise none_correct(each)


def none_correct(ended: Ended) -> KernelError:
    """The error for a search without a correct candidate."""
    return KernelError(
        f"no candidate of `{ended.problem.title}` is correct",
        hint=f"the run is stored: --show={ended.outcome.run}",
    )


def _refuted(ended: Ended) -> bool:
    """Whether no candidate is correct, and the failure of the seed schedule is not accidental, so
    that the seed cannot be used."""
    outcome = ended.outcome
    first = outcome.outcomes.get(outcome.first.key)
    failed = isinstance(first, Failure) and not first.by_chance and not first.slow
    return outcome.best is None and failed


def _seeded(plan: CallPlan, kernel: str, wrong: Collection[str]) -> bool:
    """Whether a kernel keeps its seed schedule, with a known time in a call."""
    return bool(plan.measured) and kernel not in wrong


def winner_texts_of(ended: Ended) -> KernelTexts:
    """The texts of a winner."""
    best = ended.outcome.best
    assert best is not None, "there is a winner"
    source = winner_source(ended.problem, ended.outcome)
    edited = best.source is not None
    return KernelTexts(best.backend, best.variant, best.schedule, source, edited)


def _use(plan: CallPlan, way: Way, spec: Spec, ended: Ended | None) -> KernelUse:
    texts = plan.texts(spec) if ended is None else winner_texts_of(ended)
    first, evaluation = plan.times[spec.name], None
    if ended is not None:
        evaluation = ended.outcome.evaluation
        first = ended.outcome.first_us or first
    return KernelUse(
        name=spec.name,
        calls=way.calls[spec.name],
        spec=spec_digest(spec),
        schedule=text_digest(texts.schedule),
        source=text_digest(texts.source),
        backend=texts.backend,
        us=evaluation.us if evaluation else first,
        first_us=first,
        evaluations=ended.outcome.evaluations if ended else 0,
        time_kind=evaluation.time_kind if evaluation else MEASURED,
        correct_by=evaluation.correct_by if evaluation else "",
    )


def _passed_over(plan: CallPlan, way: Way, spec: Spec, winner: KernelTexts) -> KernelUse:
    """A kernel with its seed schedule in place of a winner."""
    return replace(_use(plan, way, spec, None), passed_over=text_digest(winner.source))


def program_record(
    found: FoundCall, name: str, network: str, inputs: Sequence[Tensor], command: str
) -> ProgramRecord:
    """The record of a call. name: of the module. network: its digest. inputs: of the call."""
    first = found.plan.served[0]
    said = first.backend.available(first.machine)
    before, after = found.before, found.after
    kinds = sorted({kernel.time_kind for kernel in found.kernels})
    return ProgramRecord(
        name=name,
        network=network,
        target=first.machine.name,
        backend=first.name,
        command=command,
        device=str(said.get("device", "")),
        toolchain=str(said["toolchain"]),
        inputs=tuple(f"{t.name}: {t.dtype}[{', '.join(map(str, shape(t, {})))}]" for t in inputs),
        choices=dict(found.way.choices),
        kernels=found.kernels,
        sum_us=found.us(lambda kernel: kernel.us),
        first_sum_us=found.us(lambda kernel: kernel.first_us),
        time_kind=" and ".join(kinds),
        us=after.us if after else None,
        graph_us=after.graph_us if after else None,
        first_us=before.us if before else None,
        first_graph_us=before.graph_us if before else None,
    )
