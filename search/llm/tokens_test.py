"""Token estimates are upper estimates."""

from search.llm.exchange import Message, Request
from search.llm.tokens import PER_MESSAGE, most_tokens, request_tokens


def test_letters_and_blanks_come_at_least_in_pairs():
    assert most_tokens("") == 0
    assert most_tokens("a") == 1
    assert most_tokens("the tile") == 4


def test_all_else_is_counted_by_the_byte():
    assert most_tokens("0.125") == 5
    assert most_tokens("é") == 2
    assert most_tokens("x = 64;") == 2 + 4
    assert most_tokens("\udc80") == 3


def test_each_message_has_a_frame():
    messages = (Message("system", "the tile"), Message("user", "12"))
    assert request_tokens(Request("m", messages)) == 4 + 2 + 2 * PER_MESSAGE
