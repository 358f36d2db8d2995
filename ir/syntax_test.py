"""Parsing in several threads at once, and a fork during it."""

import ast
import gc
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from ir.syntax import syntax_tree

TEXT = "y = [" + ", ".join(f"(x[{n}] + {n}) * -f({n})" for n in range(60)) + "]\n"


class Released:
    """Part of a reference cycle, so that the garbage collector ends it and other threads get to
    run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        for _ in range(100):
            pass


@pytest.fixture
def hurried():
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(10)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


def test_threads_that_parse_at_the_same_time(hurried):
    expected = ast.dump(ast.parse(TEXT))

    def parsed(_):
        Released()
        return ast.dump(syntax_tree(TEXT)) == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(parsed, range(200)))


def test_a_process_forked_meanwhile_parses_too():
    ended = threading.Event()

    def again():
        while not ended.is_set():
            syntax_tree(TEXT)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                syntax_tree(TEXT)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        thread.join()


def test_it_raises_and_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(syntax_tree("x = 1if y else 2").body) == 1
        with pytest.raises(SyntaxError):
            syntax_tree("x = (")
