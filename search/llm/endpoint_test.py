"""The endpoint is read from the environment, and does not reveal its secrets."""

import pytest

from ir.errors import KernelError
from search.llm.endpoint import DEFAULT_URL, Endpoint, endpoint

KEY = "sk-0123456789"


def test_without_a_key_there_is_none():
    assert endpoint({}) is None
    assert endpoint({"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": "http://host/v1"}) is None


def test_a_key_alone_is_for_the_usual_address():
    assert endpoint({"OPENAI_API_KEY": f"{KEY}\n"}) == Endpoint(DEFAULT_URL, KEY)


def test_another_address_is_taken():
    variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://localhost:8000/v1"}
    assert endpoint(variables).base_url == "http://localhost:8000/v1"


@pytest.mark.parametrize(
    "base",
    [
        "localhost:8000",
        "ftp://host/v1",
        "https://",
        "http://me:word@host:port/v1",
        "/v1",
        "http://[",
    ],
)
def test_what_is_no_address_is_refused(base):
    with pytest.raises(KernelError, match="no address of an endpoint") as caught:
        endpoint({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": base})
    assert caught.value.where == "OPENAI_BASE_URL"
    assert KEY not in str(caught.value) and "word" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-é", "sk-1 sk-2", "sk-1\nsk-2"])
def test_what_is_no_key_is_refused_without_showing_it(key):
    with pytest.raises(KernelError, match="characters that are not allowed") as caught:
        endpoint({"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


def test_secrets_are_not_shown():
    found = Endpoint("https://me:word@host:8000/v1?key=12", KEY)
    assert KEY not in repr(found)
    assert found.shown == "https://host:8000/v1"
    assert found.scrubbed(f"{KEY} and word and {KEY}") == "*** and *** and ***"
