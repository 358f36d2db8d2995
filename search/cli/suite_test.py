"""A resumed run has the problem with which it started, including the order of the sizes."""

from pathlib import Path

import pytest

from search.cli.arguments import arguments
from search.cli.suite import LIBRARY, library, resumed, suite
from search.core.settings import settings


def problem(*words):
    """The problem of a command line: one kernel on one target."""
    (found,) = suite(arguments(words, "null", "rows"), Path).problems
    return found


def ordered(found):
    """Everything in a problem that depends on the order of sizes."""
    chosen = found.settings
    shapes = [(list(s.sizes.items()), s.weight) for s in chosen.workload]
    return list(chosen.sizes.items()), [list(c.items()) for c in chosen.checks], shapes


def stored(found):
    """The problem of a run that was started, stored and resumed."""
    again = settings(found.settings.to_json())
    return resumed(arguments(["--resume=run"], "null", "rows"), "run", again, Path)


def sizes_of(kernel, factor):
    """The tuning sizes of a library kernel as a user's text, last name first."""
    tune = problem("--target=null", f"--kernel={kernel}").tune
    return ",".join(f"{name}={number * factor}" for name, number in reversed(tune.items()))


@pytest.mark.parametrize("shapes", [0, 1, 2])
@pytest.mark.parametrize("kernel", library())
def test_a_kernel_of_the_library_goes_on_with_its_sizes_in_their_order(kernel, shapes):
    words = [f"--shape={sizes_of(kernel, 2**n)}" for n in range(shapes)]
    found = problem("--target=null", f"--kernel={kernel}", *words)
    again = stored(found)
    assert ordered(again) == ordered(found)
    assert again.settings == found.settings and again.tune == found.tune


@pytest.mark.parametrize("order", ["M=64, K=96", "K=96, M=64"])
def test_a_kernel_of_a_file_goes_on_with_its_tuning_sizes_in_their_order(order, tmp_path):
    text = (LIBRARY / "softmax.kir").read_text().partition("tune(")[0]
    file = tmp_path / "softmax.kir"
    file.write_text(f"{text}tune({order})\ncheck(K=5, M=3)\n".replace("softmax", "soft"))
    found = problem("--target=null", f"--kernel={file}")
    again = stored(found)
    assert ordered(again) == ordered(found)
    assert list(found.settings.sizes) == ["M", "K"] == list(again.tune)


RECURRENT = '''
import torch

class Model(torch.nn.Module):
    """Its steps run in one cooperative launch, which CUDA C++ has on this chip."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.RNN(8, 8)

    def forward(self, x):
        return self.layer(x)[0]

def get_inputs():
    return [torch.rand(3, 2, 8)]

def get_init_inputs():
    return []
'''


@pytest.mark.parametrize(
    ("words", "languages"),
    [((), {"triton", "cuda"}), (("--backend=triton",), {"triton"})],
    ids=["all race", "one is named"],
)
def test_a_kernel_of_a_module_begins_in_the_language_that_makes_it_best(tmp_path, words, languages):
    file = tmp_path / "recurrent.py"
    file.write_text(RECURRENT)
    asked = arguments(("--target=h200", f"--problem={file}", *words), "null", "rows")
    plan = suite(asked, Path).calls["h200"].plan
    assert {seed.texts.backend for seed in plan.seeds()} == languages
