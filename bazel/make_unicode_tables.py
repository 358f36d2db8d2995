"""Makes the tables of characters that Hypothesis draws texts from, in a folder.

Hypothesis keeps them in `.hypothesis` of the working folder. A test of Bazel finds none there and may
not leave any, so that each process would take seconds to make them again.
"""

import sys
from pathlib import Path

from hypothesis import strategies
from hypothesis.configuration import set_hypothesis_home_dir


def main(folder: str) -> None:
    """Makes those of all texts."""
    set_hypothesis_home_dir(Path(folder))
    strategies.text().validate()


if __name__ == "__main__":
    main(*sys.argv[1:])
