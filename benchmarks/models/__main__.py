"""Compares searches with and without a language model, and records and replays runs with one.

The model is any OpenAI-compatible endpoint, which the environment names as for `evolve`. Without an
endpoint, nothing is compared and nothing is written. The kernels are those of
benchmarks/search/testbed, which no document of the knowledge base describes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from backends.registry import target
from benchmarks import results
from benchmarks.models.comparison import KEY, NONE, key, row_of, summary, words
from benchmarks.models.recording import ENDING, difference, read, recording, write
from benchmarks.search.kernels import ENDING as KIR
from benchmarks.search.kernels import GROUP, TESTBED, chosen, testbed_kernels
from ir.errors import KernelError
from ir.source import near
from search.llm.endpoint import KEY as SECRET
from search.llm.endpoint import Endpoint, endpoint
from search.store.store import Store

DONE, DIFFERS, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
EXAMPLES = """
examples:
  python3 -m benchmarks.models compare --model NAME --seeds 3 --evaluations 24 --store models.db \\
      --out models.json
  python3 -m benchmarks.models record matmul_chain-npu-2 --store models.db --out recorded/
  python3 -m benchmarks.models replay recorded/*.jsonl
"""


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Runs the command.

    Returns exit code 1 if a replay differs, 2 for wrong usage or without an endpoint, 130 if it was
    interrupted.
    """
    asked = _parser().parse_args(arguments)
    try:
        return {"compare": _compare, "record": _record, "replay": _replay}[asked.action](
            asked, environ
        )
    except KernelError as error:
        print(f"models: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print("stopped; run the same command to continue", file=sys.stderr)
        return INTERRUPTED


def _compare(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    kernels = _held_out(tuple(asked.kernels))
    target(asked.target)
    where = _endpoint(environ)
    rows = list(results.read(asked.out)["rows"])
    there = {key(row) for row in rows}
    for kernel in kernels:
        for seed in range(1, asked.seeds + 1):
            for model in (NONE, asked.model):
                wanted = dict(zip(KEY, (kernel, asked.target, seed, asked.evaluations, model)))
                if key(wanted) in there:
                    continue
                run = _searched(asked, kernel, seed, model, environ)
                rows.append(row_of(run, seed, asked.evaluations, model))
                head = {
                    "command": _command(asked),
                    "date": date.today().isoformat(),
                    "endpoint": where.shown,
                    "steps": asked.steps,
                    "summary": summary(rows),
                }
                results.save(asked.out, {**head, "rows": sorted(rows, key=key)})
                us = "nothing correct" if rows[-1]["us"] is None else f"{rows[-1]['us']:.4g} us"
                print(f"{kernel}, seed {seed}, {model or 'no model'}: {us}", file=sys.stderr)
    print(words(summary(rows)))
    return DONE


def _held_out(given: tuple[str, ...]) -> tuple[str, ...]:
    """Returns kernels of the testbed. Raises KernelError for any other, which notes may
    describe."""
    known = testbed_kernels()
    for name in chosen(given):
        if name not in known:
            raise KernelError(
                f"`{name}` is not held out: the knowledge base may describe its best schedule",
                where="--kernels",
                allowed=", ".join((GROUP, *known)),
                hint=near(name, known),
            )
    return chosen(given)


def _endpoint(environ: Mapping[str, str]) -> Endpoint:
    found = endpoint(environ)
    if found is None:
        raise KernelError(
            f"there is no endpoint: {SECRET} is not set; nothing was compared, and nothing is claimed",
            hint=f"set {SECRET}, and OPENAI_BASE_URL for any but OpenAI's",
        )
    return found


def _searched(
    asked: argparse.Namespace, kernel: str, seed: int, model: str, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the report of a search by `evolve`."""
    options = [f"--model={model}", f"--steps={asked.steps}"] if model else []
    return _evolve(
        [
            f"--kernel={TESTBED / (kernel + KIR)}",
            f"--target={asked.target}",
            f"--seed={seed}",
            f"--evaluations={asked.evaluations}",
            f"--store={asked.store.resolve()}",
            *options,
        ],
        environ,
    )


def _evolve(options: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """Returns the only run of a call of `evolve`. Raises KernelError if it failed."""
    command = [sys.executable, "-m", "search.evolve", *options, "--no-promote", "--json"]
    done = subprocess.run(command, env=dict(environ), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise KernelError(
            f"`evolve {' '.join(options)}` ended with exit code {done.returncode}",
            hint="its own message is above",
        )
    return json.loads(done.stdout)["runs"][0]


def _command(asked: argparse.Namespace) -> str:
    return (
        f"python3 -m benchmarks.models compare --model {asked.model} --target {asked.target} --seeds "
        f"{asked.seeds} --evaluations {asked.evaluations} --steps {asked.steps} --store FILE --out FILE"
    )


def _record(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    where = _endpoint(environ).shown
    store = Store(str(asked.store))
    try:
        made = recording(store, asked.run, where, date.today().isoformat())
    finally:
        store.close()
    file = asked.out / f"{asked.run}{ENDING}"
    write(file, made)
    print(f"{file}: {made.title}; {len(made.exchanges)} exchanges")
    return DONE


def _replay(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    code = DONE
    for file in asked.files:
        made = read(file)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "store.db"
            store = Store(str(place))
            run = made.keep(store)
            store.close()
            found = _evolve([f"--replay={run}", f"--store={place}"], environ)
            store = Store(str(place))
            differs = difference(made, store.load(found["run"]))
            store.close()
        print(f"{file.name}: {made.title}: {differs or 'the replay is the same'}")
        code = DIFFERS if differs else code
    return code


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="models",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = made.add_subparsers(dest="action", required=True)
    compare = actions.add_parser("compare", help="with and without a model, kernel by kernel")
    compare.add_argument("--model", required=True, help="name of the model at the endpoint")
    compare.add_argument("--kernels", nargs="+", default=(GROUP,), help="kernels of the testbed")
    compare.add_argument("--target", default="npu")
    compare.add_argument("--seeds", type=_positive, default=3, help="number of seeds, from 1")
    compare.add_argument(
        "--evaluations", type=_positive, default=24, help="evaluations of each search"
    )
    compare.add_argument(
        "--steps",
        type=int,
        default=0,
        help="steps of a model before it answers (default: 0, because drafts are judged too)",
    )
    compare.add_argument("--out", required=True, type=Path, help="the result file")
    record = actions.add_parser("record", help="a stored run as a file")
    record.add_argument("run", help="name of the run in the store")
    record.add_argument("--out", required=True, type=Path, help="the folder of the file")
    for one in (compare, record):
        one.add_argument("--store", required=True, type=Path, help="the store of runs")
    replay = actions.add_parser("replay", help="recordings, asking nobody")
    replay.add_argument("files", nargs="+", type=Path)
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
