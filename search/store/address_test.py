"""Addresses name the place of a store, errors name a fault, and neither shows a password."""

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from search.store.address import (
    POSTGRESQL,
    SQLITE,
    address_of,
    without_password,
    word_without_password,
)

SERVERS = {
    "postgresql://host/db": "postgresql://host/db",
    "postgresql+psycopg://user@host:5433/db": "postgresql+psycopg://user@host:5433/db",
    "postgresql://user:secret@host/db": "postgresql://user@host/db",
    "postgresql://user:@host/db": "postgresql://user@host/db",
    "postgresql://:secret@host/db": "postgresql://@host/db",
    "postgresql://user:s%40cret@[::1]:5432/db": "postgresql://user@[::1]:5432/db",
    "postgresql://u:secret@a:1,b:2/db?target_session_attrs=any": (
        "postgresql://u@a:1,b:2/db?target_session_attrs=any"
    ),
    "postgresql:///db?host=/tmp&user=u&password=secret": "postgresql:///db?host=/tmp&user=u",
    "postgresql:///db?password=secret&host=/tmp": "postgresql:///db?host=/tmp",
    "postgresql://u@h/db?sslpassword=secret": "postgresql://u@h/db",
}


@pytest.mark.parametrize("text", SERVERS)
def test_the_address_of_a_server_is_shown_without_its_password(text):
    found = address_of(text)
    assert (found.kind, found.url, found.shown) == (POSTGRESQL, text, SERVERS[text])
    assert address_of(found.shown).shown == found.shown


@pytest.mark.parametrize("text", ["runs.db", "~/runs.db", "a?b@c:d.db", "postgresql:/runs.db"])
def test_the_path_of_a_file_is_made_whole(text):
    found = address_of(text)
    assert found.kind == SQLITE and Path(found.url).is_absolute()
    assert found.shown == found.url and without_password(text) == text


def test_the_url_of_a_file_is_taken_as_it_is():
    assert address_of("sqlite:////a/runs.db").url == "sqlite:////a/runs.db"


WRONG = {
    "mysql://user:secret@host/db": "no stores of kind `mysql`",
    "postgres://user:secret@host/db": "no stores of kind `postgres`",
    "postgresql://user:secret@host": "names no database",
    "postgresql://user:secret@host/": "names no database",
    "postgresql://user:secret@host:port/db": "`port` is no port",
    "postgresql://user:se@cret@host/db": "not the address of a database",
    "postgresql://user:se/cret@host/db": "not the address of a database",
    "postgresql://user:se?cret@host/db": "not the address of a database",
    "postgresql://user:se#cret@host/db": "not the address of a database",
    "postgresql://user:se:cret@host/db@": "not the address of a database",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_address_is_refused_without_its_password(text):
    with pytest.raises(KernelError, match=WRONG[text]) as caught:
        address_of(text)
    assert caught.value.where.startswith(text.partition(":")[0])
    assert "postgresql://USER@HOST:PORT/DATABASE" in caught.value.allowed
    assert "cret" not in str(caught.value)


@given(st.text(min_size=1))
def test_no_password_is_shown_however_it_is_quoted(password):
    password = f"<{password}>"
    text = f"postgresql://user:{quote(password, safe='')}@host/db"
    found = address_of(text)
    assert found.shown == "postgresql://user@host/db"
    assert password not in found.scrubbed(f"refused: {password}")


@given(st.text(st.characters(exclude_characters="\n"), min_size=1))
def test_no_password_is_shown_that_is_not_quoted(password):
    password = f"<{password}>"
    assert password not in without_password(f"postgresql://user:{password}@host/db")


def test_words_of_a_command_are_shown_without_a_password():
    url, shown = "postgresql://user:secret@host/db", "postgresql://user@host/db"
    words = [url, f"--store={url}", "--seed=1", "--kernel=a://b"]
    assert [*map(word_without_password, words)] == [shown, f"--store={shown}", *words[2:]]


def test_a_driver_s_message_is_shown_without_the_password():
    address = address_of("postgresql://user:s%20t@host/db?sslpassword=other")
    said = address.scrubbed("user s t at host, s%20t, other")
    assert said == "user *** at host, ***, ***"
