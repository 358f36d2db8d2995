"""The verbs of a manifest: each one listed changes the source, any other is rejected with a
reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backends.backend import Backend, BackendError
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import NOTED, Machine, Rendering
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.schedule import Schedule
from ir.sizes import free_sizes
from ir.spec import Spec

SPEC = parse_spec(
    "def product(x: f32[M, K], w: f32[K, N]) -> f32[M, N]:\n"
    '    """Multiply."""\n    y[m, n] = sum(x[m, k] * w[k, n], k)\n    return y\n'
)
SIZES = {"M": 64, "N": 64, "K": 64}
TILES = """schedule(product)
tile(m, size=16)
tile(n, size=16)
tile(k, size=16)
place(m.outer, level=grid)
place(n.outer, level=grid)
place(k.outer, level=loop)
compute(y, unit=matrix)
"""
HALVES = parse_spec(
    "def product(x: f16[M, K], w: f16[K, N]) -> f32[M, N]:\n"
    '    """Multiply."""\n    y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\n    return y\n'
)
LARGE = TILES.replace("=16", "=64") + "threads(y, count=128)\n"
LINES = {  # a decision of each verb that a loop nest only notes
    "multicast": "multicast(x, over=n.outer)",
    "pipeline": "pipeline(x, stages=3)",
    "copy": "copy(x, by=bulk)\ncopy(w, by=bulk)",
    "rasterize": "rasterize(m, size=2, over=n)",
    "threads": "threads(y, count=64)",
    "persistent": "persistent(y, programs=1)",
    "stream_k": "stream_k(y, over=k)",
    "specialize": "specialize(y)",
    "registers": "registers(y, limit=96)",
    "cache": "cache(x, hint=evict_first)",
    "unroll_loop": "unroll_loop(k.outer, factor=2)",
    "epilogue": "epilogue(y, by=shared)",
    "roles": "roles(y, producers=32)",
    "pingpong": "pingpong(y)",
}
ROWS = parse_spec(
    "def product(x: f32[M, K]) -> f32[M, K]:\n"
    '    """Divide by the sum."""\n    s[m] = sum(x[m, k], k)\n'
    "    y[m, k] = x[m, k] / s[m]\n    return y\n"
)
TWICE = "schedule(product)\ntile(m, size=16)\ntile(k, size=16)\nplace(m.outer, level=grid)\n"
OF_LOOPS = {"keep": "keep(x, over=k.outer)"}  # of two loops over one index
ALIKE, UNLIKE = (
    "pipeline(x, stages=3)\npipeline(w, stages=3)",
    "pipeline(x, stages=3)\npipeline(w, stages=2)",
)
CHAIN = parse_spec(
    "def chain(q: bf16[M, K], k: bf16[N, K], v: bf16[N, K]) -> f32[M, K]:\n"
    '    """Average by how keys fit."""\n    s[m, n] = sum(f32(q[m, d]) * f32(k[n, d]), d)\n'
    "    t[m] = max(s[m, n], n)\n    p[m, n] = exp(s[m, n] - t[m])\n"
    "    o[m, d] = sum(p[m, n] * f32(v[n, d]), n)\n    return o\n"
)
STREAMED = """schedule(chain)
tile(m, size=64)
tile(n, size=64)
place(m.outer, level=grid)
place(n.outer, level=loop)
online(t, into=o)
compute(s, unit=matrix)
compute(o, unit=matrix)
precision(o, dtype=bf16)
threads(o, count=128)
pipeline(k, stages=3)
pipeline(v, stages=3)
copy(k, by=bulk)
copy(v, by=bulk)
"""
STEPS = parse_spec(
    "def states(x: bf16[M, K], w: bf16[K, K]) -> bf16[M, K]:\n"
    '    """Each row from the one before."""\n'
    "    s[m, k] = sum(f32(pad(y[m - 1, d], 0.0)) * f32(w[d, k]), d)\n"
    "    y[m, k] = bf16(tanh(s[m, k] + f32(x[m, k])))\n    return y\n"
)
STEPPED = "schedule(states)\ntile(m, size=1)\ntile(k, size=16)\nplace(m.outer, level=grid)\nplace(k.outer, level=grid)\n"
OF_STEPS = {"cooperative": "cooperative(y)"}  # of a launch for each step of a recurrence
OF_CHAINS = {"overlap": "overlap(o)"}  # of a matmul whose operand is computed from another one
# What must be decided before it: some languages copy in bulk in pipelined loops alone.
STAGES = "pipeline(x, stages=2)\npipeline(w, stages=2)\n"
BULK = f"{STAGES}copy(x, by=bulk)\ncopy(w, by=bulk)\n"
BEFORE = {
    "copy": STAGES,
    "roles": BULK,
    "pingpong": f"{BULK}persistent(y, programs=1)\n",
    "cluster": f"{STAGES}{LINES['copy']}\n",
    "stream_k": "persistent(y, programs=1)\n",
}
# Of each verb on matmuls some decisions: a machine that has one of them alone chooses it anyway.
OF_MATMULS = {
    "warps": tuple(f"warps(y, m={m}, n={n})" for m, n in ((4, 1), (2, 2), (1, 4), (2, 1), (1, 2))),
    "instruction": tuple(
        f"instruction(y, shape={shape})" for shape in ("m16n8k16", "m64n64k16", "m32n32k8")
    ),
    "cluster": ("cluster(m, size=2)", "cluster(n, size=2)"),
    "swizzle": tuple(f"swizzle(x, bytes={count})" for count in (32, 64, 128)),
    "pad": tuple(f"pad(x, bytes={count})" for count in (16, 32)),
}
assert {*LINES, *OF_MATMULS, *OF_LOOPS, *OF_CHAINS, *OF_STEPS} == {*NOTED}


def verb_problems(backend: Backend, machine: Machine) -> Iterator[str]:
    """What is wrong with the verbs that a backend's manifest lists, on a machine that lists it."""
    noted = replace(machine, rendering=Rendering())
    for verb, line in LINES.items():
        before = BEFORE.get(verb, "")
        text = _source(backend, noted, f"{before}{line}")
        if text is None:
            continue  # no machine of this class has it
        changes = text != _source(backend, noted, before)
        listed = verb in backend.manifest.verbs
        if listed and not changes:
            yield f"the manifest lists `{verb}`, and `{line}` changes nothing"
        if changes and not listed:
            yield f"`{line}` changes the source, and the manifest does not list `{verb}`"
        yield from _admission(machine, f"{before}{line}", listed)
    others = [(*one, ROWS, TWICE) for one in OF_LOOPS.items()]
    others += [(*one, CHAIN, STREAMED) for one in OF_CHAINS.items()]
    others += [(*one, STEPS, STEPPED) for one in OF_STEPS.items()]
    for verb, line, spec, tiles in others:
        text, listed = _source(backend, noted, line, spec, tiles), verb in backend.manifest.verbs
        if text is None and verb in (*OF_CHAINS, *OF_STEPS):
            continue  # the chip has no DMA engine or instructions of warpgroups, or nothing like a grid
        changes = text not in (None, _source(backend, noted, "", spec, tiles))
        # A backend for tests may write the nest itself, whatever it lists.
        if listed != changes and not (changes and backend.manifest.for_tests):
            yield f"`{verb}` changes the source: {changes}; the manifest lists it: {listed}"
        if text is not None:
            yield from _admission(machine, line, listed, spec, tiles)
    for verb, lines in OF_MATMULS.items():
        yield from _of_matmuls(backend, machine, noted, verb, lines)
    if "pipeline" in backend.manifest.verbs:
        yield from _stages(backend, machine, noted)


def _of_matmuls(
    backend: Backend, machine: Machine, noted: Machine, verb: str, lines: tuple[str, ...]
) -> Iterator[str]:
    """What is wrong with a verb on matmuls."""
    before = BEFORE.get(verb, "")
    texts = {f"{before}{n}": _source(backend, noted, f"{before}{n}", HALVES, LARGE) for n in lines}
    legal = [text for text in texts.values() if text is not None]
    plain, listed = _source(backend, noted, before, HALVES, LARGE), verb in backend.manifest.verbs
    changes = any(text != plain for text in legal)
    if listed and not changes and len(legal) > 1:
        yield f"the manifest lists `{verb}`, and nothing of {', '.join(lines)} changes anything"
    if changes and not listed:
        yield f"`{verb}` changes the source, and the manifest does not list it"
    for line, text in texts.items():
        if text is not None:
            yield from _admission(machine, line, listed, HALVES, LARGE)


def _stages(backend: Backend, machine: Machine, noted: Machine) -> Iterator[str]:
    """Whether unlike stages of two operands are rendered, or rejected."""
    of_tensors = backend.manifest.stages_of == "tensor"
    if of_tensors and _source(backend, noted, ALIKE) == _source(backend, noted, UNLIKE):
        yield "tensors have stages of their own, and another number for one changes nothing"
    yield from _admission(machine, ALIKE, True)
    yield from _admission(machine, UNLIKE, of_tensors)


def _admission(
    machine: Machine, lines: str, legal: bool, spec: Spec = SPEC, tiles: str = TILES
) -> Iterator[str]:
    try:
        lower(spec, _schedule(lines, tiles), machine, _sizes(spec))
    except KernelError as error:
        if legal:
            yield f"`{lines}` was rejected: {error}"
        elif not (error.what and error.place and error.allowed and error.hint):
            yield f"`{lines}` was rejected without a place, what is allowed and a hint: {error}"
    else:
        if not legal:
            yield f"`{lines}` has no effect, and was not rejected"


def _sizes(spec: Spec) -> dict[str, int]:
    return {size: SIZES[size] for size in free_sizes(spec)}


def _schedule(lines: str, tiles: str = TILES) -> Schedule:
    return parse_schedule(f"{tiles}{lines}\n")


def _source(
    backend: Backend, machine: Machine, lines: str, spec: Spec = SPEC, tiles: str = TILES
) -> str | None:
    """The source with some more decisions, its header that of the schedule without them; None where
    they are not legal on any machine of the class."""
    try:
        nest = lower(spec, _schedule(lines, tiles), machine, _sizes(spec))
    except KernelError:
        return None
    try:
        return backend.emit(replace(nest, schedule=_schedule("", tiles)), machine)
    except BackendError:  # the backend gives the reason
        return None
