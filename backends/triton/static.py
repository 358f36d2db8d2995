"""Static figures of a module's Python text: what its kernels load, reduce and multiply.

The text is parsed, never run. A kernel is a function decorated with `jit` that is launched; where
no launch is found, every such function is a kernel. Calls are not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ir.syntax import syntax_tree

LANGUAGE = ("tl", "language", "libdevice")
REDUCTIONS = (
    "sum",
    "max",
    "min",
    "argmax",
    "argmin",
    "xor_sum",
    "reduce",
    "associative_scan",
    "cumsum",
    "cumprod",
    "sort",
    "histogram",
)
STARTS = ("full", "zeros", "zeros_like", "full_like")  # functions that create accumulators
LARGER = 16  # factor for each further axis of a tile: a guess, as the text gives no extents
TextBlock = tuple[str, int]  # a kernel, and the line of the loop in it; 0: outside of loops


@dataclass(frozen=True, slots=True)
class LoadText:
    """A load in a kernel's text."""

    name: str  # the assigned variable; empty where it is used at once
    tensor: str  # the pointer at the root of its address
    block: TextBlock
    depth: int  # the number of enclosing loops
    size: float  # a rough number of elements, to compare loads
    ahead: bool  # whether its loop is pipelined
    bulk: bool  # whether it is by a descriptor


@dataclass(slots=True)
class KernelText:
    """The facts of one kernel's text."""

    name: str
    stages: int  # num_stages of its launch
    loads: list[LoadText] = field(default_factory=list)
    stores: list[tuple[str, TextBlock]] = field(default_factory=list)
    # By name: the loop depths of the statements that read it
    uses: dict[str, list[int]] = field(default_factory=dict)
    factors: set[str] = field(default_factory=set)  # names of matmul operands
    calls: list[str] = field(default_factory=list)
    carried: int = 0

    def reused(self, load: LoadText) -> bool:
        """Whether a loaded value is read more than once; see `ir.estimate.kernel_features`."""
        uses = self.uses.get(load.name, [])
        deeper = any(depth > load.depth for depth in uses)
        return load.name in self.factors or len(uses) > 1 or deeper


def static_figures(source: str) -> Mapping[str, float]:
    """The facts of `ir.estimate.kernel_features` that a module's text shows. Empty where the text
    is no module, or has no kernel that moves data."""
    try:
        module = syntax_tree(source)
    except (SyntaxError, ValueError):
        return {}
    kernels = [_Reader(node, stages).kernel for node, stages in _kernels(module)]
    kernels = [k for k in kernels if k.loads or k.stores]
    if not kernels:
        return {}
    whole = sum(one.size for k in kernels for one in k.loads) or 1.0
    shares = [(k, one, one.size / whole) for k in kernels for one in k.loads]
    calls = [name for k in kernels for name in k.calls]
    products = calls.count("dot") + calls.count("dot_scaled")
    return {
        "reused": sum(share for k, one, share in shares if k.reused(one)),
        "ahead": sum(share for _, one, share in shares if one.ahead),
        "passes": float(_passes(kernels)),
        "carried": float(sum(k.carried for k in kernels)),
        "matrix_share": float(products > 0),
        "barriers": float(calls.count("debug_barrier") + sum(_staged(k) for k in kernels)),
        "collectives": float(sum(name in REDUCTIONS for name in calls)),
        "atomics": float(sum(name.startswith("atomic_") for name in calls)),
    }


def _kernels(module: ast.Module) -> Iterator[tuple[ast.FunctionDef, int]]:
    """The kernels, with the stages that their launches request."""
    made = {
        node.name: node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list))
    }
    launched = {
        call.func.value.id: _stages(call)
        for call in ast.walk(module)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Subscript)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in made
    }
    for name in launched or made:
        yield made[name], launched.get(name, 1)


def _is_jit(decorator: ast.expr) -> bool:
    at = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _last(at) == "jit"


def _last(node: ast.AST) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _stages(call: ast.Call) -> int:
    for keyword in call.keywords:
        if keyword.arg == "num_stages" and isinstance(keyword.value, ast.Constant):
            return int(keyword.value.value)
    return 1


def _passes(kernels: list[KernelText]) -> int:
    """The most places from which one tensor is loaded, and to which it is stored."""
    places: dict[str, set[tuple[TextBlock, bool]]] = {}
    for kernel in kernels:
        for one in kernel.loads:
            places.setdefault(one.tensor, set()).add((one.block, True))
        for tensor, block in kernel.stores:
            places.setdefault(tensor, set()).add((block, False))
    return max((len(found) for found in places.values()), default=1)


def _staged(kernel: KernelText) -> int:
    """The number of loads that are staged in shared memory: matmul operands and bulk copies."""
    return len({one.name for one in kernel.loads if one.bulk or one.name in kernel.factors})


class _Reader:
    """Reads the statements of one kernel in order."""

    def __init__(self, function: ast.FunctionDef, stages: int):
        self.kernel = KernelText(function.name, stages)
        self.roots: dict[str, str] = {}  # local names of addresses, with the underlying parameters
        self.started: set[str] = set()  # accumulators
        self._block(function.body, 0, 0, False)

    def _block(self, body: list[ast.stmt], line: int, depth: int, ahead: bool) -> None:
        for statement in body:
            if isinstance(statement, ast.For | ast.While):
                self._loop(statement, depth)
            elif isinstance(statement, ast.If | ast.With):
                self._look(statement, line, depth, ahead, whole=False)
                self._block(statement.body, line, depth, ahead)
                self._block(getattr(statement, "orelse", []), line, depth, ahead)
            else:
                self._statement(statement, line, depth, ahead)

    def _loop(self, loop: ast.For | ast.While, depth: int) -> None:
        stages = self.kernel.stages
        static = False
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
            stages = max(stages, _stages(loop.iter))
            static = _last(loop.iter.func) == "static_range"
        self._block(loop.body, loop.lineno, depth + (not static), stages > 1)

    def _statement(self, statement: ast.stmt, line: int, depth: int, ahead: bool) -> None:
        target = _target(statement)
        value = getattr(statement, "value", None)
        if target and value is not None:
            self.roots.setdefault(target, self._root(value))
            if isinstance(value, ast.Call) and _last(value.func) in STARTS:
                self.started.add(target)
            itself = isinstance(statement, ast.AugAssign) or target in _names(value)
            self.kernel.carried += bool(depth and itself and target in self.started)
        self._look(statement, line, depth, ahead, target=target)

    def _look(
        self,
        node: ast.AST,
        line: int,
        depth: int,
        ahead: bool,
        target: str = "",
        whole: bool = True,
    ) -> None:
        """Records the calls and names in a statement, or (not `whole`) in its head."""
        parts = (
            [node]
            if whole
            else [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]
        )
        nodes = [n for part in parts for n in ast.walk(part)]
        names = [n for n in nodes if isinstance(n, ast.Name)]
        for name in {n.id for n in names if isinstance(n.ctx, ast.Load)}:
            self.kernel.uses.setdefault(name, []).append(depth)
        for call in (n for n in nodes if isinstance(n, ast.Call)):
            self._call(call, (self.kernel.name, line), depth, ahead, target)

    def _call(self, call: ast.Call, block: TextBlock, depth: int, ahead: bool, target: str) -> None:
        name, whose = _last(call.func), getattr(call.func, "value", None)
        ours = isinstance(whose, ast.Name | ast.Attribute) and _last(whose) in LANGUAGE
        address = (call.args[0] if ours and call.args else whose) if whose is not None else None
        if name == "load" and address is not None:
            size = float(LARGER ** max(1, _axes(address, call)))
            one = LoadText(target, self._root(address), block, depth, size, ahead, not ours)
            self.kernel.loads.append(one)
        elif name == "store" and address is not None:
            self.kernel.stores.append((self._root(address), block))
        if ours:
            self.kernel.calls.append(name)
        if ours and name.startswith("dot"):
            self.kernel.factors.update(n for arg in call.args[:2] for n in _names(arg))

    def _root(self, node: ast.expr) -> str:
        """The name from which an address starts: `x_ptr` of `x_ptr + m * K + offs`."""
        while not isinstance(node, ast.Name):
            inner = getattr(node, "left", None) or getattr(node, "value", None)
            if isinstance(node, ast.Call):
                inner = node.args[0] if node.args else node.func
            if not isinstance(inner, ast.expr):
                return ""
            node = inner
        return self.roots.get(node.id) or node.id


def _target(statement: ast.stmt) -> str:
    """The single name to which a statement assigns."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0].id if isinstance(statement.targets[0], ast.Name) else ""
    if isinstance(statement, ast.AugAssign | ast.AnnAssign):
        return statement.target.id if isinstance(statement.target, ast.Name) else ""
    return ""


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _axes(address: ast.expr, call: ast.Call) -> int:
    """The apparent number of axes of a load: those over which addresses are broadcast by `None`, or
    the coordinates of a descriptor."""
    spread = [
        len(n.slice.elts)
        for n in ast.walk(address)
        if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Tuple)
    ]
    if spread:
        return max(spread)
    position = call.args[0] if call.args else None
    return len(position.elts) if isinstance(position, ast.List | ast.Tuple) else 1
