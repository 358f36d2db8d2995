"""A study: the next settings of Optuna's samplers after some trials.

Only this module uses Optuna. No state is kept between calls: each call makes a new study from the
trials, so the same trials and seed give the same settings.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Thread, get_ident
from types import ModuleType
from typing import Any

from search.loop.context import NotInstalled

TPE, CMA = "tpe", "cma"
_UNUSED = "scipy.stats"  # imported by an unused sampler of `cmaes`, which has a fallback
PACKAGES = ("optuna", "cmaes")
STARTUP = 10
_FEWEST = 10  # trials of a warm start, which uses the best tenth


@dataclass(frozen=True, slots=True)
class StudyParameter:
    """A parameter with the values 0 to `count` - 1."""

    count: int
    ordinal: bool  # whether neighbours are similar


@dataclass(frozen=True, slots=True)
class Trial:
    """An evaluated setting."""

    setting: Mapping[str, int]
    # Lower is better; None: it failed.
    value: float | None


def asked(
    sampler: str,
    axes: Mapping[str, StudyParameter],
    trials: Sequence[Trial],
    start: Mapping[str, int],
    seed: int,
    startup: int = STARTUP,
) -> Iterator[Mapping[str, int]]:
    """Yields settings to try, without end: `tpe` over all axes, `cma` over the ordinal ones.

    trials: settings of at least these axes, in the order of their outcomes. start: where `cma`
    begins before any trial succeeded. startup: trials before which `tpe` samples at random. Raises
    NotInstalled if Optuna is not installed.
    """
    optuna = _optuna()
    if sampler == CMA:
        axes = {name: axis for name, axis in axes.items() if axis.ordinal}
    spread = {name: _distribution(optuna, axis, sampler) for name, axis in axes.items()}
    if not spread:
        return
    known = [_trial(optuna, spread, trial) for trial in trials]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts of its API are marked as experimental
        if sampler == CMA:
            made = _cma(optuna, known, start, spread, seed)
        else:
            made = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup)
        study = optuna.create_study(sampler=made)
        study.add_trials(known)
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = study.ask(fixed_distributions=spread).params
        yield found


def load() -> Thread:
    """Imports the samplers' packages in a thread, because that takes seconds on first use."""
    thread = Thread(target=_imported, name="imports", daemon=True)
    thread.start()
    return thread


def _imported() -> None:
    for name in PACKAGES:
        with suppress(ImportError), _Hidden(_UNUSED):  # the first use reports a missing package
            import_module(name)


class _Hidden:
    """A context that hides a module from this thread's imports, unless it is already imported."""

    def __init__(self, name: str):
        self.name, self.thread = name, get_ident()

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self.name and get_ident() == self.thread:
            raise ModuleNotFoundError(f"`{name}` is hidden", name=name)


def lacking() -> str:
    """The package that samplers need and that is not installed; empty if none is missing."""
    return next((name for name in PACKAGES if find_spec(name) is None), "")


@cache
def _optuna() -> ModuleType:
    if name := lacking():
        raise NotInstalled(
            f"parameters are tuned by Optuna, and `{name}` is not installed",
            hint=f"install {name}, or leave the tuning operators out",
        )
    import optuna

    with _Hidden(_UNUSED):
        import_module("cmaes")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _distribution(optuna: ModuleType, axis: StudyParameter, sampler: str) -> Any:
    if sampler == CMA or axis.ordinal:
        return optuna.distributions.IntDistribution(0, axis.count - 1)
    return optuna.distributions.CategoricalDistribution(tuple(range(axis.count)))


def _trial(optuna: ModuleType, spread: Mapping[str, Any], trial: Trial) -> Any:
    """A trial of Optuna. A failure is a pruned trial, which is worse than any with a value."""
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        params={name: trial.setting[name] for name in spread},
        distributions=dict(spread),
        value=trial.value,
        state=states.PRUNED if trial.value is None else states.COMPLETE,
    )


def _cma(
    optuna: ModuleType,
    known: Sequence[Any],
    start: Mapping[str, int],
    spread: Mapping[str, Any],
    seed: int,
) -> Any:
    """CMA-ES with a warm start from the trials (Nomura et al., AAAI 2021)."""
    good = [t for t in known if t.state == optuna.trial.TrialState.COMPLETE]
    if good:
        repeated = good * -(-_FEWEST // len(good))
        return optuna.samplers.CmaEsSampler(seed=seed, source_trials=repeated)
    begin = {name: start[name] for name in spread}
    return optuna.samplers.CmaEsSampler(seed=seed, x0=begin, n_startup_trials=0)
