"""An answer with parameters is evaluated for several combinations, in a run that can be resumed."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.digest import text_digest
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.testing import CHIP, SETTINGS
from search.core.trial import Template
from search.llm.exchange import Answer
from search.loop.context import GaveUp
from search.loop.run import Search
from search.loop.state import Proposal
from search.loop.testing import Clock, Heard, Simulated, result
from search.operator.offering import combination
from search.operator.testing import ROOT, Model, context, edit, universal
from search.operator.trials import AHEAD, HOPELESS, Trials
from search.store.store import Store

SIZE = "PARAMETER size in (8, 5, 4)\n" + edit(
    "schedule.sched", "tile(m, size=16)", "tile(m, size=$size)"
)
TEXT = "PARAMETER a in (1, 2, 3, 4)\nPARAMETER b in (x, y)\nWider.\n>>>>>>> FILE kernel.tng\n"
TEXT += "fast {} $a $b\n<<<<<<< END\n"


def first_of(answer, surface="schedule", model=None):
    model = model or Model(answer)
    return universal(model, surface).propose(context(ROOT), random.Random(1)), model


def test_the_first_values_that_are_legal_make_the_first_child_which_carries_the_answer():
    found, _ = first_of(SIZE.replace("(8, 5, 4)", "(0, 8, 4)"))
    assert "tile(m, size=8)" in found.schedule
    assert found.origin.trial.values == {"size": "8"} and found.origin.note == "Because (size=8)"
    assert found.origin.trial.template.parameters == {"size": ("0", "8", "4")}


def test_each_surface_may_have_parameters():
    found, _ = first_of(TEXT.format(7), "source")
    assert found.source == "fast 7 1 x\n"
    old = "    y[m, n] = acc[m, n] * g[n]"
    swap = "PARAMETER one in (g, acc)\n" + edit("variant.kir", old, old.replace("g[n]", "${}[n]"))
    found, model = first_of(swap.format("one"), "equations")
    assert isinstance(found, GaveUp), "it is the same as it was, or no equation"
    again = "PARAMETER t in (s, r)\n" + edit(
        "variant.kir", old, "    $t[m, n] = acc[m, n] * g[n]\n    y[m, n] = $t[m, n] + 0.0"
    )
    found, _ = first_of(again, "equations")
    assert "s[m, n] = acc[m, n] * g[n]" in found.variant


def test_an_answer_of_which_no_combination_is_legal_is_refused_with_each_reason():
    model = Model(SIZE.replace("(8, 5, 4)", "(0, word, 16)"))
    found, _ = first_of("", model=model)
    said = model.asked[1].messages[-1].content
    assert isinstance(found, GaveUp) and "none of 3 combinations is a kernel" in said
    assert "with size=0: " in said and "with size=word: " in said
    assert "with size=16: it was tried before" in said


TEMPLATE = Template(
    {"kernel.tng": "$a $b"}, {"a": ("1", "2", "3", "4"), "b": ("x", "y", "z")}, "Why"
)


def told(trials, template, us, seed="0", forgets=False):
    """All combinations in the order in which they are made, each with an outcome before the next.
    forgets: whether a new process chooses each of them."""
    around = replace(context(ROOT))
    child = trials.first(around, template, "universal")
    made, first = [], child
    while isinstance(child, Candidate):
        made.append(child)
        around.graph.add(child)
        time = us(child.origin.trial.values)
        around.outcomes[child.key] = (
            Failure("check", "wrong", "so")
            if time is None
            else Evaluation(time, "modelled", "emulator")
        )
        child = (Trials(trials.limit) if forgets else trials).next(around, first, seed)
    return made


def test_all_combinations_are_made_in_order_where_the_limit_allows():
    made = told(Trials(12), TEMPLATE, lambda values: 5.0)
    values = [c.origin.trial.values for c in made]
    assert values == TEMPLATE.combinations()
    assert [c.origin.trial.template is not None for c in made] == [True] + [False] * 11


@settings(max_examples=20)
@given(st.integers(1, 11), st.integers(0, 3), st.sampled_from([5.0, None]))
def test_no_more_than_the_limit_are_made_each_once_and_alike_each_time(limit, seed, wrong):
    def us(values):
        return wrong if values["b"] == "x" and values["a"] != "1" else float(values["a"])

    made = told(Trials(limit), TEMPLATE, us, str(seed))
    assert len(made) == limit == len({c.key for c in made})
    again = told(Trials(limit), TEMPLATE, us, str(seed))
    assert [c.key for c in again] == [c.key for c in made]


def test_the_sampler_looks_where_the_fast_ones_are():
    values = {"a": tuple(str(n) for n in range(16)), "b": tuple(str(n) for n in range(16))}
    template = Template({"kernel.tng": "$a $b"}, values)

    def us(values):
        return 1.0 + (int(values["a"]) - 11) ** 2 + (int(values["b"]) - 3) ** 2

    best = [
        min(us(c.origin.trial.values) for c in told(Trials(24), template, us, str(seed)))
        for seed in range(6)
    ]
    rng = random.Random(0)
    drawn = [
        min(us({"a": rng.randrange(16), "b": rng.randrange(16)}) for _ in range(24))
        for _ in range(200)
    ]
    assert sorted(best)[3] < sorted(drawn)[100], "better than as many draws at random"


@pytest.mark.parametrize("seed", range(3))
def test_a_process_that_knows_nothing_of_the_choices_before_makes_the_same(seed):
    sizes = tuple(str(n) for n in (8, 0, 4, 10**9, 2, 7, 1, 10**8))
    text = ROOT.schedule.replace("tile(m, size=16)", "tile(m, size=$m)")
    template = Template({"schedule.sched": f"{text}# $n\n"}, {"m": sizes, "n": ("a", "b", "c")})
    made = told(Trials(5), template, lambda values: float(values["m"]), str(seed))
    assert len(made) > 2 and len({c.key for c in made}) == len(made)
    again = told(Trials(5), template, lambda values: float(values["m"]), str(seed), forgets=True)
    assert [c.key for c in again] == [c.key for c in made]


def test_an_answer_that_only_fails_is_given_up():
    assert len(told(Trials(12), TEMPLATE, lambda values: None)) == HOPELESS


def test_the_first_is_waited_for_and_then_only_a_few_are_ahead():
    around, trials = context(ROOT), Trials(12)
    first = trials.first(around, TEMPLATE, "universal")
    around.graph.add(first)
    assert isinstance(trials.next(around, first, "0"), GaveUp)
    around.outcomes[first.key] = Evaluation(5.0, "modelled", "emulator")
    for _ in range(AHEAD):
        around.graph.add(trials.next(around, first, "0"))
    assert trials.next(around, first, "0").reason == "combinations before it are not known yet"


def test_a_combination_that_another_request_came_to_is_passed_over():
    around, trials = context(ROOT), Trials(12)
    around.graph.add(combination(around, TEMPLATE, {"a": "1", "b": "x"}, "universal", 99))
    found = trials.first(around, TEMPLATE, "universal")
    assert found.origin.trial.values == TEMPLATE.combinations()[1]


# A whole run.


class First:
    """Always chooses the first candidate as a parent."""

    def ask(self, state, count, rng):
        return [Proposal("universal", (state.roots[0],))] * count


class Timed:
    """A source's time depends on its words; every third value of `a` is wrong."""

    contexts = {"tongue": "timed"}
    environment = {"contexts": contexts}

    def __init__(self, clock):
        self.clock, self.asked = clock, []

    def evaluate(self, candidates, seconds=None):
        for position, c in enumerate(candidates):
            self.asked.append(c.key)
            self.clock.now += 1.0
            words = c.source.split() if c.source else ["", "0", "2", "x"]
            if words[2] == "3":
                yield position, Failure("check", "wrong", "three")
                continue
            us = 9.0 - int(words[2]) - (words[3] == "y") / 2 - int(words[1]) % 97 / 1000
            yield position, Evaluation(us, "simulated", "simulator", figures={})


class Stopping(Simulated):
    """Is interrupted after a number of jobs."""

    def __init__(self, clock, most):
        super().__init__(clock, 2)
        self.most = most

    def next(self):
        self.most -= 1
        if self.most < 0:
            raise KeyboardInterrupt
        return super().next()


FEW = replace(SETTINGS, measures=(), roofline_share=1e9, requests=2, evaluations=24)


def search(store, *, most=10**9, run=None, script=(), trials=6, alike=False, **changes):
    clock = Clock()
    asked = []

    def ask(request):
        clock.now += 60.0
        number = 0 if alike else int(text_digest(request.prompt), 16)  # no two prompts are equal
        asked.append(request)
        return Answer(TEXT.format(number), 9, 9, 0.0, "stop", 0.1)

    operator = universal(ask, "source", repairs=0.0, trials=Trials(trials))
    evaluator = Timed(clock)
    made = Search(
        replace(FEW, **changes),
        evaluator,
        store,
        machines={"tongue": CHIP},
        policy=First(),
        operators={"universal": operator},
        models=Heard(clock),
        clock=clock,
        jobs=Stopping(clock, most),
        run=run,
        script=script,
        combinations=Trials(trials),
    )
    return made, evaluator, asked


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def trials_of(outcome):
    found = {}
    for c in outcome.graph:
        if c.origin.trial:
            found.setdefault(c.origin.trial.answer, []).append(c)
    return found


def test_each_combination_is_an_evaluation_of_its_own_and_credited_to_the_model(store):
    made, evaluator, asked = search(store)
    outcome = made.run()
    assert outcome.evaluations == 24 == len(evaluator.asked)
    groups = trials_of(outcome)
    whole = [group for group in groups.values() if len(group) == 6]
    assert len(whole) >= 2 and len(asked) < 9, "few requests made many children"
    assert all(c.origin.operator == "universal" and c.origin.prompt for g in whole for c in g)
    assert all(c.origin.parents == g[0].origin.parents for g in whole for c in g)
    assert len({c.key for g in whole for c in g}) == 6 * len(whole)


def test_later_prompts_tell_the_best_values_with_what_the_others_came_to(store):
    made, _, asked = search(store)
    outcome = made.run()
    last = asked[-1].messages[1].content
    best = outcome.best.origin.trial
    assert best.values == {"a": "4", "b": "y"} and f"universal: Wider ({best})" in last
    (line,) = [line for line in last.split("\n") if "with other values" in line][:1]
    assert "a=2, b=x: 6." in line and "us (chip, simulated)" in line
    assert "a=3, b=x: failed at check (wrong): three" in line
    assert last.count(": Wider (") == last.count("it with other values"), "an answer is told once"


def test_a_run_that_is_replayed_by_its_stored_order_is_the_same(store):
    made, _, _ = search(store)
    outcome = made.run()
    again, _, asked = search(store, script=store.load(outcome.run).events)
    other = again.run()
    assert result(other) == result(outcome) and asked
    assert [c.origin for c in other.graph] == [c.origin for c in outcome.graph]


@pytest.mark.parametrize("most", range(3, 21, 3))
def test_a_run_that_is_stopped_amid_the_trials_goes_on_as_if_it_had_not_been(store, most):
    before = search(store, most=most)[0].run()
    assert before.stopped_because == "it was interrupted"
    resumed, evaluator, _ = search(store, run=before.run)
    after = resumed.run()
    assert after.evaluations == 24
    assert list(after.outcomes)[: before.evaluations] == list(before.outcomes)
    assert not set(before.outcomes) & set(evaluator.asked), "what was stored is not tried again"
    groups = trials_of(after)
    assert len(next(iter(groups.values()))) == 6, (
        "an answer that was being tried is tried to the end"
    )
    assert all(len({str(c.origin.trial) for c in g}) == len(g) <= 6 for g in groups.values())
    replayed = search(store, script=store.load(before.run).events)[0].run()
    assert result(replayed) == result(after)


def test_answers_that_are_paid_for_have_their_trials_when_the_tokens_are_spent(store):
    outcome = search(store, max_tokens=150, requests=1)[0].run()
    assert outcome.stopped_because.startswith("200 tokens")
    assert [len(group) for group in trials_of(outcome).values()] == [6, 6]


def test_equal_answers_to_two_requests_have_different_combinations(store):
    outcome = search(store, alike=True, trials=3, evaluations=9)[0].run()
    groups = list(trials_of(outcome).values())
    assert len(groups) > 1
    values = [tuple(c.origin.trial.values.values()) for group in groups for c in group]
    assert len(set(values)) == len(values)


def test_a_limit_of_one_times_the_first_alone(store):
    outcome = search(store, trials=1, evaluations=5)[0].run()
    assert all(len(group) == 1 for group in trials_of(outcome).values())
