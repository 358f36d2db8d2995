"""The use of models is reported in words and as plain data; unknown values are reported as
unknown."""

from search.core.model_use import ModelUse, PromptUse, Spent

FIRST = PromptUse("a1", "", "", 4, 1, 1.5)
SECOND = PromptUse("b2", "a1", "simplify", 0, 0, 1.0)


def test_a_cost_that_is_not_known_is_said_to_be():
    use = ModelUse(Spent(1200, None), answers=5, refused=2)
    assert str(use) == "1200 tokens at a cost that is not known; 5 answers, 2 of them refused"
    assert use.table()["cost"] is None


def test_requests_that_failed_are_counted_by_why():
    failed = {"the connection failed": 2, "too many requests": 1}
    use = ModelUse(Spent(), unanswered=3, failed=failed)
    assert "3 requests without an answer (2 the connection failed, 1 too many requests)" in str(use)
    assert use.table()["failed"] == failed


def test_all_of_it_is_said():
    use = ModelUse(Spent(1200, 0.25), 5, 2, 1, (FIRST, SECOND))
    assert str(use) == (
        "1200 tokens at a cost of 0.25; 5 answers, 2 of them refused; "
        "1 request without an answer; 2 versions of the prompts"
    )
    table = use.table()
    assert list(table) == [
        "tokens",
        "cost",
        "answers",
        "refused",
        "unanswered",
        "cut",
        "steps",
        "parameterised",
        "combinations",
        "prompts",
    ]
    assert table["prompts"][1] == {
        "digest": "b2",
        "parent": "a1",
        "move": "simplify",
        "children": 0,
        "failed": 0,
        "gain": 1.0,
    }


def test_answers_that_were_cut_off_are_counted():
    assert "2 answers cut off at --answer-tokens" in str(ModelUse(Spent(), 5, 2, cut=2))
    assert ModelUse(Spent(), 5, 2, cut=2).table()["cut"] == 2


def test_what_two_conversations_took_adds_up_and_is_unknown_where_one_is():
    assert Spent(1, 0.5, 2.0).plus(Spent(3, 0.25, 1.0)) == Spent(4, 0.75, 3.0)
    assert Spent(1, 0.5).plus(Spent(1, None)).cost is None
