"""Contributions count children by operator, and compare each with its first parent."""

from search.core.candidate import Candidate, Origin
from search.core.contributions import Contribution, contributions
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph


def tried(lines):
    """A graph and outcomes from tuples: name, operator, microseconds (None: failed), parents."""
    graph, outcomes, keys = Graph(), {}, {}
    for name, operator, us, *parents in lines:
        origin = Origin(operator, tuple(keys[p] for p in parents))
        made = Candidate("def k", name, "chip", "tongue", origin=origin)
        graph.add(made)
        keys[name] = made.key
        wrong = Failure("check", "wrong", "off")
        outcomes[made.key] = wrong if us is None else Evaluation(us, "simulated", "simulator")
    return graph, outcomes


def test_each_operator_has_its_children_and_their_best_gain():
    found = contributions(
        *tried(
            [
                ("a", "first", 8.0),
                ("b", "plain", 4.0),
                ("c", "mutate", 5.0, "a"),
                ("d", "mutate", 2.0, "c"),
                ("e", "mutate", None, "a"),
                ("f", "cross", 1.0, "d", "a"),
                ("g", "step", None, "f"),
                ("h", "repair", 3.0, "e"),
            ]
        )
    )
    assert found == (
        Contribution("mutate", 3, 2, 1, 2.5),
        Contribution("cross", 1, 1, 1, 2.0),
        Contribution("repair", 1, 1, 0, None),
        Contribution("step", 1, 0, 0, None),
    )


def test_without_children_there_are_none():
    assert contributions(*tried([("a", "first", 8.0), ("b", "plain", None)])) == ()
