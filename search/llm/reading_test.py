"""A complete answer is accepted, even if the rest of its stream is late or breaks off."""

from types import SimpleNamespace

import pytest

from search.llm.endpoint import Endpoint
from search.llm.exchange import ModelError
from search.llm.reading import AnswerReading
from search.llm.testing import Time, request
from search.llm.tokens import request_tokens

ENDPOINT = Endpoint("http://127.0.0.1/v1", "sk-1", deadline=10.0)


def piece(text, finish=None, index=0, usage=None):
    delta = SimpleNamespace(content=text, refusal=None)
    choice = SimpleNamespace(delta=delta, index=index, finish_reason=finish)
    return SimpleNamespace(choices=[choice], usage=usage)


def reading():
    time = Time()
    made = AnswerReading(request(), ENDPOINT, time.clock)
    made.begin(streams=True, events=True)
    return made, time


def test_an_answer_whose_last_word_comes_after_the_deadline_is_taken():
    made, time = reading()
    made.take(piece("All "))
    time.now = 11.0
    made.take(piece("of it.", finish="stop"))
    made.finish()
    assert made.complete and made.answer().text == "All of it."


def test_an_answer_that_is_not_done_by_the_deadline_is_given_up():
    made, time = reading()
    time.now = 11.0
    with pytest.raises(ModelError, match="after 10 s") as caught:
        made.take(piece("All "))
    assert caught.value.kind == "timeout" and not made.complete


def test_a_stream_that_is_only_kept_open_ends_at_the_deadline():
    made, time = reading()

    def chunks():
        while True:
            time.now += 1.0
            yield b": ping\n\n"

    with pytest.raises(ModelError, match="after 10 s"):
        list(made.watched(chunks()))


def test_a_stream_without_an_end_is_cut_at_so_many_bytes():
    made, _ = reading()
    with pytest.raises(ModelError, match="more than 67108864 bytes") as caught:
        list(made.watched(b"x" * (1 << 20) for _ in range(1 << 10)))
    assert caught.value.kind == "cut"


@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b"data:[DONE]\n\n"])
def test_the_last_line_of_a_stream_ends_an_answer_too(end):
    made, _ = reading()
    for _ in made.watched([b"data: {}\n\n", end]):
        made.take(piece("Done."))
    made.finish()
    assert made.complete


def test_words_of_an_answer_that_was_not_asked_for_are_left_out():
    made, _ = reading()
    for index in (0, 1, 2):
        made.take(piece(f"answer {index}", finish="stop", index=index))
    assert made.answer().text == "answer 0"


@pytest.mark.parametrize("count", ["many", -3, None, 1.5])
def test_a_count_that_is_none_is_estimated(count):
    made, _ = reading()
    usage = SimpleNamespace(prompt_tokens=count, completion_tokens=3)
    made.take(piece("Done.", finish="stop", usage=usage))
    found = made.answer()
    assert found.usage == "estimated" and found.tokens_in == request_tokens(request())
    assert made.reported == (0, 0)
