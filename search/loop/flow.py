"""Flow: the loop of a search that asks models or measures times.

Requests and evaluations run concurrently. A child is evaluated as soon as it is made. Its outcome is reported at
once, and the next prompt includes it. The number of requests in flight is at most what the user allows and at most
the number of missing children. The log keeps the order (`script.py`).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.model_use import Spent
from search.core.stored import StoredEvent
from search.loop.allocation import shares, standing
from search.loop.asking import named, proposed, tagged
from search.loop.backend_view import BackendView
from search.loop.book import Book
from search.loop.context import GaveUp, Halted, Memory, ModelOperator, Operator, Refused
from search.loop.generations import brought_over
from search.loop.hooks import ModelHooks
from search.loop.jobs import Done, Jobs
from search.loop.requests import Request, silenced, taken_of
from search.loop.script import DREW, LEFT, RESTED, TOLD, TOOK, Script
from search.loop.shape_view import ShapeView
from search.loop.state import Policy, Proposal, State
from search.loop.termination import CostLimit, Exhausted, Tokens, first_reason, rules_of
from search.loop.trials import Combinations, another, carries, continues, next_trial
from search.loop.twins import Twins
from search.loop.weighing import weighing
from search.warm_start.first import PLAIN

BARREN = 24  # fruitless proposals in a row, after which the flow waits for an outcome
TWICE = "it came to a kernel that another request had come to by then"
IN_HAND = 4  # there is one ready candidate for every IN_HAND workers
DOUBTFUL = 12  # fruitless proposals, after which operators without models come before models


class Flow:
    """Draws, asks, evaluates and reports, each as early as possible."""

    def __init__(
        self,
        book: Book,
        policy: Policy,
        operators: Mapping[str, Operator],
        models: ModelHooks | None,
        twins: Twins,
        jobs: Jobs,
        script: Script,
        combinations: Combinations | None = None,
        workers: int = 1,
    ):
        self.book = book
        self.policy = policy
        self.operators = operators
        self.models = models
        self.twins = twins
        self.jobs = jobs
        self.script = script
        self.combinations = combinations
        self._rules = rules_of(book.settings)
        self._weighing = weighing(book.settings.weigh)
        self._remote = {name for name, o in operators.items() if o.remote}
        # Candidates in evaluation at once. Some wait, so that a free worker finds one.
        self._most = book.settings.batch if self._remote else workers + -(-workers // IN_HAND)
        self._local = {name: o for name, o in operators.items() if not o.remote}
        self._draws = 0
        self._submitted = 0
        self._advices = 0
        self._drawn: dict[str, int] = {}  # by candidate key: the draw that made it
        self._in_flight: dict[str, Request] = {}
        self._evaluating: dict[str, Candidate] = {}
        # by key of the first twin, until it is reported
        self._twins_of: dict[str, list[Candidate]] = {}
        self._done: dict[str, Done] = {}  # ended jobs that have not taken effect yet
        self._held = ""  # a drawn operator that waits until a request may be sent
        self._turns: deque[str] = deque()  # backends of the next draws
        # The next combination, and the state for which it was looked up.
        self._due: tuple[tuple[int, int], Candidate | None] = ((0, 0), None)
        self._barren = 0
        self._exhausted = not self._local  # whether operators without models have nothing new
        self._refused: list[Refused] = []  # requests that gave nothing
        self._silent: list[str] = []  # why models gave no answer since the last news
        self._halted: Halted | None = None
        self._spent = Spent()
        self._by_operator: dict[str, Spent] = {name: Spent() for name in sorted(self._remote)}

    def run(self) -> str:
        """Searches until a rule stops it; returns the reason. Raises Halted if models cannot be asked any more."""
        self._begin()
        while True:
            reason = self._stopped()
            if reason is not None:
                return reason
            self._advise()
            if self._may_draw():
                self._draw()
            elif self._pending():
                self._take()
            elif self._halted is not None:
                raise self._halted
            elif not self._rested():
                now = self.book.progress(self.book.seconds(), True, self._spent)
                return first_reason((*self._rules, Exhausted()), now) or ""

    def _begin(self) -> None:
        book = self.book
        self._log_asked(0, book.roots)
        for root in book.roots:
            book.add(root)
            self._submit(0, root)

    def _log_asked(self, number: int, candidates: Sequence[Candidate]) -> None:
        self.book.store.asked(self.book.run, number, candidates, self.book.seconds())

    def _stopped(self) -> str | None:
        """The reason to stop now, or None. If only the models' budget is spent, paid children are still evaluated."""
        seconds = 0.0 if self.script.next else self.book.seconds()
        progress = self.book.progress(seconds, spent=self._spent)
        firm = [rule for rule in self._rules if not isinstance(rule, Tokens | CostLimit)]
        reason = first_reason(firm, progress)
        if reason is None and (self._pending() or self._trial() is not None):
            return None
        return reason or first_reason(self._rules, progress)

    def _pending(self) -> bool:
        return bool(self._in_flight or self._evaluating)

    # The choice of the next action.

    def _may_draw(self) -> bool:
        """Whether the next action is a draw. The script decides if there is one."""
        while event := self.script.next:
            if event.kind == DREW and self._missing() > 0:
                self._follow(event)
                return True
            if event.kind in (TOOK, TOLD) and self._is_pending(event.key):
                return False
            if event.kind == RESTED and not self._pending():
                self._follow(event)
                self._news()
                if self.models is not None and not self.script.again:
                    self.models.rest()
                continue
            self.script.leave()
        if self.script.shortened:
            self._leave()
        if not self._wants_to_draw():
            return False
        self.book.log(DREW, str(self._draws + 1))
        return True

    def _leave(self) -> None:
        """Ends the stored order. Actions that cannot be repeated are not tried again later."""
        self.book.log(LEFT, str(self.script.followed))
        self.script.shortened = False

    def _follow(self, event: StoredEvent) -> None:
        """Follows an event of the script. A continued run has it in its log already."""
        self.script.follow()
        if self.book.record is None:
            self.book.log(event.kind, event.key, event.detail)

    def _is_pending(self, name: str) -> bool:
        return name in self._in_flight or name in self._evaluating

    def _wants_to_draw(self) -> bool:
        book, most = self.book, self._most
        if book.time_is_over() or self._missing() < 1:
            return False
        if any(r.key in self._evaluating for r in book.roots) and not self._opened():
            return False
        if self._trial() is not None:  # its answer is already paid for
            return len(self._evaluating) < most
        spent = first_reason(self._rules, book.progress(0.0, spent=self._spent))
        if self._halted or spent:
            return False
        if self._held and not self._slot_is_free():
            return False
        return self._barren < BARREN and len(self._evaluating) < most

    def _opened(self) -> bool:
        """Whether children can be made before all roots are known. The plain schedule alone is not enough."""
        best = self.book.best
        return not self._remote and best is not None and best[0].origin.operator != PLAIN

    def _missing(self) -> int:
        """How many children may still be asked for."""
        under_way = len(self._evaluating) + self._children_in_flight()
        limit = self.book.settings.evaluations
        most = self._most + self.book.settings.requests
        return most if limit is None else limit - self.book.told - under_way

    def _children_in_flight(self) -> int:
        return sum(bool(request.operator) for request in self._in_flight.values())

    def _slot_is_free(self) -> bool:
        return self._children_in_flight() < self.book.settings.requests

    def _rested(self) -> bool:
        """Waits for models that gave no answer. Returns False if nothing more can be tried."""
        if not self._silent:
            return False
        if self.book.time_is_over():
            return True
        self._allow()
        if self.models is None or not self.models.rest():
            raise silenced(self._silent)
        self.book.log(RESTED, "")
        self._news()
        return True

    def _news(self) -> None:
        """Resets the counters of failed attempts, because the state has changed."""
        self._barren = 0
        self._exhausted = not self._local
        self._silent.clear()

    # Draws.

    def _draw(self) -> None:
        """Draws one proposal, which becomes a child, a request, or nothing."""
        self._draws += 1
        number = self._draws
        view = self._view()
        if self._remembered(number):
            return
        trial = self._trial()
        if trial is not None:
            self.book.add(trial)
            return self._made(number, trial)
        shapes = (None, *view.shapes)
        shape = shapes[number % len(shapes)]
        brought = brought_over(self.book, self.operators, view)
        if brought is not None:
            return self._made(number, brought)
        rng = random.Random(f"{self.book.settings.seed}/draw/{number}")
        state = self._state(view, shape)
        doubtful = self._barren >= DOUBTFUL and not self._exhausted
        self._held = "" if doubtful else self._held
        for proposal in self._proposals(state, rng, self._local if doubtful else self.operators):
            operator = self.operators[proposal.operator]
            if operator.remote:
                if self._slot_is_free():
                    self._held = ""
                    return self._ask(number, view, shape, proposal)
                self._held = operator.name
                return None
            context = self.book.context(view, shape, proposal).unedited()
            child = tagged(proposed(operator, context, rng), proposal)
            if isinstance(child, Candidate) and self.book.add(child):
                return self._made(number, child)
        if doubtful:
            self._exhausted = True
        else:
            self._barren += self.book.settings.batch
        return None

    def _trial(self) -> Candidate | None:
        """The next combination of an answer with parameters; None if there is none."""
        now = (len(self.book.graph), self.book.told)
        if self.combinations is not None and self._due[0] != now:
            self._due = (now, next_trial(self.book, self.combinations))
        return self._due[1]

    def _remembered(self, number: int) -> bool:
        """Repeats the result of a draw of an earlier session. Returns False if it is unknown."""
        record = self.book.record
        if record is None or self.script.next is None:
            return False
        name = str(number)
        known = number < len(record.generations)
        stored = record.generations[number] if known else ()
        taken = self.script.took(name)
        if taken is not None and (stored or taken.why or taken.halted):
            nothing = (taken.why, taken.unanswered, taken.asked, taken.answer, taken.prompt)
            found = stored[0] if stored else GaveUp(*nothing)
            self._held = ""
            self._in_flight[name] = Request(number, taken.operator, None, taken.asked)
            self._done[name] = Done(name, (found, taken.spent))
        elif stored and (continues(stored[0]) or stored[0].origin.operator not in self._remote):
            self._held = self._held if continues(stored[0]) else ""
            self.book.add(stored[0])
            self._made(number, stored[0])
        else:
            return False
        return True

    def _view(self) -> BackendView:
        """The backend of the next child. In a race, backends take turns by their shares."""
        views = self.book.views
        if not self._turns:
            stand = [standing(v.backend, self.book.graph, v.outcomes) for v in views.values()]
            left = shares(stand, self.book.settings.batch)
            while any(left.values()):
                for name in [name for name, count in left.items() if count]:
                    self._turns.append(name)
                    left[name] -= 1
        return views[self._turns.popleft()]

    def _state(self, view: BackendView, shape: ShapeView | None) -> State:
        """The policy's view of a backend."""
        settings = self.book.settings
        made = len(self.book.graph) - len(self.book.roots)
        spent = {
            name: self._weighing.of(taken, settings.requests)
            for name, taken in self._by_operator.items()
        }
        return view.state(1 + made // settings.batch, spent, shape)

    def _proposals(
        self, state: State, rng: random.Random, operators: Mapping[str, Operator]
    ) -> list[Proposal]:
        """Proposals in the order of trial: one of the policy's generation, then its spare ones. A held operator comes
        first."""
        batch = self.book.settings.batch
        every = list(self.policy.ask(state, batch, rng))
        if not every:
            return []
        first = every.pop(rng.randrange(min(batch, len(every))))
        found = [first, *every[batch - 1 :]]
        if self._held:
            parents = self.operators[self._held].parents
            fitting = [p for p in (*found, *every) if len(p.parents) >= parents]
            if fitting:
                one = fitting[0]
                held = Proposal(self._held, one.parents[:parents], one.tag, one.hint)
                return [held, *named(state, found, operators, rng)]
            self._held = ""
        return named(state, found, operators, rng)

    def _ask(
        self, number: int, view: BackendView, shape: ShapeView | None, proposal: Proposal
    ) -> None:
        operator: ModelOperator = self.operators[proposal.operator]  # type: ignore[assignment]
        waiting = tuple(r.asked for r in self._in_flight.values() if r.asked)
        memory = Memory(number, waiting, tuple(self._refused))
        context = replace(self.book.context(view, shape, proposal).frozen(), memory=memory)
        pending = operator.prepare(context, random.Random(f"{self.book.settings.seed}/{number}"))
        if isinstance(pending, GaveUp):
            self._came_to_nothing(pending)
            return
        request = Request(number, operator.name, proposal, pending.asked)
        self._request(str(number), request, pending.answer)

    def _advise(self) -> None:
        """Asks for better prompts if this is due."""
        asking = any(not r.operator for r in self._in_flight.values())
        if self.models is None or self._halted or asking:
            return
        book = self.book
        advice = self.models.advised(book.told, book.graph, book.outcomes, self._refused)
        if advice is not None:
            self._advices += 1
            name = f"advice {self._advices}"
            self._request(name, Request(0, "", None, ""), advice)

    def _request(self, name: str, request: Request, work: Callable[[], object]) -> None:
        self._allow()
        self._in_flight[name] = request
        self.jobs.request(name, partial(self._answered, work))

    def _answered(self, work: Callable[[], object]) -> tuple[object, Spent]:
        """Runs in a thread: the result of a request, and its cost."""
        assert self.models is not None, "a request is sent to a model"
        with self.models.metered() as meter:
            try:
                found = work()
            except Halted as halted:
                found = halted
        return found, meter.spent

    def _allow(self) -> None:
        """Tells models how long the search can wait for them."""
        left = self.book.seconds_left()
        if left is not None and self.models is not None:
            self.models.allow(left)

    # Evaluations.

    def _made(self, number: int, child: Candidate) -> None:
        """Stores a child that is in the graph, and evaluates it."""
        self._news()
        self._log_asked(number, (child,))
        self._submit(number, child)

    def _submit(self, number: int, candidate: Candidate) -> None:
        book, key = self.book, candidate.key
        self._drawn[key] = number
        self._evaluating[key] = candidate
        self._submitted += 1
        first = self.twins.first_of(candidate)
        if key in book.known:
            self._done[key] = Done(key)
            return
        book.asked(self._submitted - 1, number, candidate)
        if first == key:
            self._evaluate(candidate)
        elif first in book.outcomes:
            self._share(first, [candidate])
        else:
            self._twins_of.setdefault(first, []).append(candidate)

    def _share(self, first: str, twins: Sequence[Candidate]) -> None:
        """Gives twins the outcome of the first, and evaluates those that need their own."""
        left = self.book.shared(first, twins)
        for twin in twins:
            if twin in left:
                self._evaluate(twin)
            else:
                self._done[twin.key] = Done(twin.key)

    def _evaluate(self, candidate: Candidate) -> None:
        self.jobs.evaluation(candidate.key, partial(self._outcome, candidate))

    def _outcome(self, candidate: Candidate) -> Evaluated | None:
        """Runs in a thread: the outcome of a candidate; None if time was over before."""
        found = self.book.evaluator.evaluate([candidate], self.book.seconds_left())
        return next((outcome for _, outcome in found), None)

    # Effects of ended jobs.

    def _take(self) -> None:
        """Applies the next ended job: the one that the script names, or the first."""
        event = self.script.next
        done = self._next(event.key if event else None)
        if event is not None:
            self.script.follow()
        if done.name in self._in_flight:
            self._took(done, logged=event is not None)
        elif done.name in self.book.known:
            self._tell(done.name)
        else:
            del self._evaluating[done.name]

    def _next(self, wanted: str | None) -> Done:
        while not (self._done if wanted is None else wanted in self._done):
            done = self.jobs.next()
            if done.name in self._evaluating:
                outcome = done.result()
                if outcome is not None:
                    self.book.file(self._evaluating[done.name], outcome)
            self._done[done.name] = done
        return self._done.pop(next(iter(self._done)) if wanted is None else wanted)

    def _took(self, done: Done, logged: bool) -> None:
        """Applies the result of a request."""
        found, spent = done.result()
        request = self._in_flight.pop(done.name)
        if isinstance(found, Candidate):
            if found.key in self.book.graph:
                found = self._other(found) or GaveUp(TWICE, asked=request.asked)
            elif request.proposal:
                found = tagged(found, request.proposal)
        if not (logged and self.book.record):
            self.book.log(TOOK, done.name, taken_of(request, found, spent).to_json())
        self._spent = self._spent.plus(spent)
        if isinstance(found, Halted):
            self._halted = found
        elif not request.operator:
            if found is not None:
                found()
        else:
            before = self._by_operator[request.operator]
            self._by_operator[request.operator] = before.plus(spent)
            if isinstance(found, GaveUp):
                self._came_to_nothing(found)
            else:
                self.book.add(found)
                self._made(request.number, found)

    def _other(self, found: Candidate) -> Candidate | None:
        """Another combination of an answer with parameters, which then carries the answer."""
        if self.combinations is None or not carries(found):
            return None
        other = another(self.book, self.combinations, found)
        if isinstance(other, GaveUp):
            return None
        assert other.origin.trial is not None and found.origin.trial is not None
        trial = replace(other.origin.trial, template=found.origin.trial.template)
        return replace(other, origin=replace(other.origin, trial=trial))

    def _came_to_nothing(self, found: GaveUp) -> None:
        self._barren += 1
        if found.unanswered:
            self._silent.append(found.reason)
        elif found.asked:
            refused = Refused(found.asked, found.reason, found.answer, found.prompt)
            self._refused.append(refused)

    def _tell(self, key: str) -> None:
        self.book.tell(self._drawn[key], self._evaluating.pop(key))
        self._news()
        self._share(key, self._twins_of.pop(key, []))
