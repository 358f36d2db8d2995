"""Admission check: what a kernel's Python source may contain, so that its own kernels do the work.

A source has only functions: kernels for Triton's compiler, and plain functions that allocate and
launch. It uses no library that computes, keeps nothing between calls, and cannot reach the process
that checks and times it. Emitted sources pass; edited ones are checked.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NoReturn

from backends.backend import BackendError
from backends.emit import Templates
from backends.shared.python_text import hidden_names, plain_tree

IMPORTS = (
    "import torch",
    "import triton",
    "import triton.language as tl",
    "from triton.tools.tensor_descriptor import TensorDescriptor",
    "from triton.language.extra import libdevice",
)
BUILTINS = frozenset(
    "ValueError abs bool enumerate float int len list max min range reversed sum tuple zip".split()
)
ALLOCATES = ("empty", "empty_like", "device", "dtype")
TORCH = frozenset(
    """
    float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool float8_e4m3fn float8_e5m2
    """.split()
) | set(ALLOCATES)
TRITON = frozenset("cdiv next_power_of_2 jit".split())
ON_TENSORS = frozenset(
    "shape device dtype is_contiguous numel bit_length stride element_size".split()
)
# From triton.language: values, types and functions that compute. No assembly, no printing, and no
# modules, which lead to Python's own functions.
LANGUAGE = frozenset(
    """
    constexpr float64 float32 float16 bfloat16 float8e4nv float8e5 float8e4b8 float8e5b16 int64 int32 int16 int8 int1
    uint64 uint32 uint16 uint8 pointer_type dtype tensor program_id num_programs arange full zeros
    zeros_like cat join split interleave broadcast broadcast_to expand_dims permute trans ravel
    reshape view where load store atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor
    atomic_cas atomic_xchg make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor
    make_block_ptr advance dot dot_scaled abs ceil cdiv clamp cos div_rn erf exp exp2 fdiv floor fma
    log log2 maximum minimum rsqrt sigmoid sin sqrt sqrt_rn umulhi argmax argmin max min sum
    xor_sum reduce reduce_or associative_scan cumsum cumprod histogram sort topk gather flip swizzle2d
    max_constancy max_contiguous multiple_of assume static_range range static_assert cast philox rand
    randn randint randint4x pair_uniform_to_normal uint_to_uniform_float debug_barrier PropagateNan
    """.split()
)
# Functions that store, and the names of their address parameter.
STORES, PLACES = ("store", "store_tensor_descriptor", "scatter"), ("pointer", "desc")
READS = ("load", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg")
# Attributes of values in a kernel: tensors, descriptors and dtypes.
OF_VALUES = frozenset(
    """
    T to shape dtype type element_ty value numel primitive_bitwidth is_floating is_int is_ptr
    load store gather scatter atomic_add trans reshape view permute broadcast_to expand_dims ravel
    split cast sum max min argmax argmin abs exp exp2 log log2 sqrt rsqrt sin cos floor ceil sigmoid
    cumsum cumprod xor_sum reduce associative_scan sort flip bit_length ALL NONE block_shape
    """.split()
)
_STATEMENTS = (
    *(ast.FunctionDef, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr),
    *(ast.For, ast.While, ast.If, ast.Return, ast.Raise, ast.Assert),
    *(ast.Pass, ast.Break, ast.Continue),
)
_EXPRESSIONS = (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_AT = "outside of functions there are imports, numbers and a text about the kernel"


def require_admissible(source: str) -> None:
    """Raises BackendError("build") at the first construct that a kernel may not use."""
    tree = plain_tree(source)
    known = set(BUILTINS)
    taken = set(BUILTINS)
    for node in tree.body:
        _require_outside(node)
        for name in _outside(node):
            if name in taken:
                _refuse(node, name, "a name stands for one thing, as who reads a text takes it")
            taken.add(name)
        inside = () if isinstance(node, ast.FunctionDef) else ast.walk(node)
        known |= {name for each in (node, *inside) for name in _bound(each)}
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    kernels = {node.name: node for node in functions if _is_kernel(node)}
    for node in functions:
        if ast.dump(node) != _wrappers_check():
            _require_function(node, known, kernels)
    _require_one_way(tree, kernels)


def require_host(source: str, emitted: str) -> None:
    """Raises BackendError("build") where functions other than kernels and `launch` differ from
    those of the emitted source: users call them, but no evaluation does. A source may omit them."""
    known = {node.name: ast.dump(node) for node in _host(emitted)}
    for node in _host(source):
        if known.get(node.name) != ast.dump(node):
            why = (
                "beside kernels and `launch` there are the functions that are emitted, as they are"
            )
            _refuse(node, f"def {node.name}", why)


def _host(source: str) -> Iterator[ast.FunctionDef]:
    for node in plain_tree(source).body:
        if isinstance(node, ast.FunctionDef) and not _is_kernel(node) and node.name != "launch":
            yield node


@cache
def _wrappers_check() -> str:
    """The emitted function that checks a wrapper's inputs. It is admitted only verbatim: any other
    use of the gradient mode would let a kernel detect who calls it."""
    return ast.dump(ast.parse(Templates("triton").render("require.py.j2")).body[0])


def _require_outside(node: ast.stmt) -> None:
    text = ast.unparse(node)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        if text not in IMPORTS:
            _refuse(node, text, f"it may be: {'; '.join(IMPORTS)}")
    elif isinstance(node, ast.Assign):
        value = node.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.constexpr":
            value = value.args[0] if len(value.args) == 1 else value
        if not _is_constant(value) or not all(isinstance(t, ast.Name) for t in node.targets):
            _refuse(node, text, _AT)
    elif isinstance(node, ast.FunctionDef):
        for decorator in node.decorator_list:
            if not ast.unparse(decorator).startswith("triton.jit"):
                _refuse(decorator, ast.unparse(decorator), "a kernel is marked @triton.jit alone")
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        _refuse(node, text.splitlines()[0], _AT)


def _require_function(
    node: ast.FunctionDef, outside: set[str], kernels: Mapping[str, ast.FunctionDef]
) -> None:
    """Raises BackendError("build") where a function's body breaks a rule. outside: names defined at
    module level. kernels: those of the source."""
    kernel = node.name in kernels
    known = outside | {name for child in ast.walk(node) for name in _bound(child)}
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
        if not _is_constant(default):
            _refuse(default, ast.unparse(default), "a default is a constant, as it outlives a call")
    for child in ast.walk(node):
        if child is not node and isinstance(child, ast.FunctionDef):
            _refuse(child, child.name, "a function stands by itself")
        if isinstance(child, ast.stmt) and not isinstance(child, _STATEMENTS):
            text = ast.unparse(child).splitlines()[0]
            _refuse(child, text, "no state, no import, no other way out")
        for name in hidden_names(child):
            _refuse(node, name, "it is Python's own outside of what binds it")
        if isinstance(child, ast.Constant) and isinstance(child.value, bytes | complex):
            _refuse(child, ast.unparse(child), "a constant is a number or a text")
        if isinstance(child, _EXPRESSIONS):
            _refuse(child, ast.unparse(child), "a kernel is plain expressions")
        if isinstance(child, ast.Name) and child.id not in known:
            allowed = ", ".join(sorted(BUILTINS))
            _refuse(child, child.id, f"names are the text's own, and: {allowed}")
        if isinstance(child, (ast.Attribute, ast.Subscript)) and isinstance(child.ctx, ast.Store):
            _refuse(child, ast.unparse(child), "nothing is kept from one call to the next")
        if isinstance(child, ast.Attribute):
            _require_attribute(child, kernel)
    if not kernel:
        _require_no_arithmetic(node)


def _require_one_way(tree: ast.Module, kernels: Mapping[str, ast.FunctionDef]) -> None:
    """Raises BackendError("build") where a kernel both stores and atomically adds to a tensor. The
    result would depend on the order of programs, which a comparison with the reference may not
    reveal. kernels: those of the source."""
    for name, parameters in _launched(tree, kernels):
        added, stored = _written(kernels[name], parameters, kernels, ())
        for tensor in sorted(set(added) & set(stored)):
            why = f"a kernel stores `{tensor}` or adds to it, not both, as its programs race otherwise"
            _refuse(stored[tensor], ast.unparse(stored[tensor]), why)


def _launched(
    tree: ast.Module, kernels: Mapping[str, ast.FunctionDef]
) -> Iterator[tuple[str, set[str]]]:
    """Each launch of a kernel, with the parameters that receive tensors."""
    for host in tree.body:
        if not isinstance(host, ast.FunctionDef) or host.name in kernels:
            continue
        tensors = _tensors(host)
        for child in ast.walk(host):
            match child:
                case ast.Call(ast.Subscript(ast.Name(name)), args, keywords) if name in kernels:
                    given = _given(kernels[name], args, keywords)
                    named = {
                        parameter: {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
                        for parameter, value in given.items()
                    }
                    yield name, {p for p, names in named.items() if names & tensors}


def _given(
    kernel: ast.FunctionDef, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]
) -> dict[str, ast.expr]:
    """The argument of each parameter of a kernel in a call."""
    names = [a.arg for a in (*kernel.args.posonlyargs, *kernel.args.args)]
    given = dict(zip(names, args, strict=False))
    return given | {k.arg: k.value for k in keywords if k.arg}


def _written(
    node: ast.FunctionDef,
    tensors: Collection[str],
    kernels: Mapping[str, ast.FunctionDef],
    callers: tuple[str, ...],
) -> tuple[dict[str, ast.Call], dict[str, ast.Call]]:
    """The tensor parameters to which a kernel adds, and those that it stores, each with the call.
    callers: kernels in the call chain."""
    held = _addresses(node, tensors)
    added: dict[str, ast.Call] = {}
    stored: dict[str, ast.Call] = {}

    def note(into: dict[str, ast.Call], place: ast.expr, call: ast.Call) -> None:
        into.update((t, call) for name in _terms(place) for t in held.get(name, ()))

    for child in ast.walk(node):
        match child:
            case ast.Call(ast.Attribute(value, function), args, keywords):
                language = isinstance(value, ast.Name) and value.id == "tl"
                places = [*args[:1], *(k.value for k in keywords if k.arg in PLACES)]
                for place in places if language else [value]:
                    if function.startswith("atomic_"):
                        note(added, place, child)
                    elif function in STORES:
                        note(stored, place, child)
            case ast.Call(ast.Name(name), args, keywords) if (
                name in kernels and name not in callers
            ):
                given = _given(kernels[name], args, keywords)
                below = _written(kernels[name], list(given), kernels, (*callers, node.name))
                for into, found in zip((added, stored), below, strict=True):
                    for parameter in found:
                        note(into, given[parameter], child)
    return added, stored


def _addresses(node: ast.FunctionDef, tensors: Collection[str]) -> dict[str, set[str]]:
    """The tensors whose address a name in a kernel may hold: tensor parameters, and sums with one."""
    held = {name: {name} for name in tensors}
    assigned = [
        c for c in ast.walk(node) if isinstance(c, ast.Assign | ast.AnnAssign | ast.AugAssign)
    ]
    while True:  # the end of a loop precedes its beginning
        before = sum(map(len, held.values()))
        for child in assigned:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            terms = _terms(child.value) if child.value else ()
            found = {t for name in terms for t in held.get(name, ())}
            for name in (n for target in targets for n in _bound_in(target) if found):
                held[name] = held.get(name, set()) | found
        if sum(map(len, held.values())) == before:
            return held


def _bound_in(target: ast.expr) -> Iterator[str]:
    for each in ast.walk(target):
        yield from _bound(each)


def _terms(expr: ast.expr) -> Iterator[str]:
    """The names that are summands of an expression."""
    match expr:
        case ast.Name(name):
            yield name
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            yield from _terms(left)
            yield from _terms(right)
        case ast.Call(ast.Attribute(ast.Name("tl"), function), args, keywords) if (
            function not in READS
        ):
            for each in (*args, *(k.value for k in keywords)):
                yield from _terms(each)
        case ast.Call(ast.Attribute(value, function)) if function not in READS:
            yield from _terms(value)
        case ast.Call(ast.Name(), args, keywords):  # such as a kernel of the source
            for each in (*args, *(k.value for k in keywords)):
                yield from _terms(each)
        case ast.IfExp(_, first, second):
            yield from _terms(first)
            yield from _terms(second)
        case ast.Tuple(elements):
            for each in elements:
                yield from _terms(each)
        case ast.Subscript(value):
            yield from _terms(value)


def _require_no_arithmetic(node: ast.FunctionDef) -> None:
    """Raises BackendError("build") where a launching function computes with tensors: operators on
    tensors are kernels of a library."""
    tensors = _tensors(node)
    for child in ast.walk(node):
        used: list[ast.expr] = []
        match child:
            case ast.BinOp(left, _, right):
                used = [left, right]
            case ast.UnaryOp(_, operand):
                used = [operand]
            case ast.AugAssign(target, _, value):
                used = [target, value]
            case ast.Compare(left, _, others):
                used = [left, *others]
            case ast.Subscript(value):
                used = [value]
            case ast.Call(ast.Name(name), args) if name in BUILTINS - {"zip", "enumerate"}:
                used = [*args, *(a.value for a in args if isinstance(a, ast.Starred))]
        for operand in used:
            if isinstance(operand, ast.Name) and operand.id in tensors:
                why = "a function that launches does not compute with tensors"
                _refuse(child, ast.unparse(child).splitlines()[0], why)


def _tensors(node: ast.FunctionDef) -> set[str]:
    """The names in a function that may be tensors: its parameters, torch's allocations, and values
    derived from these."""
    found = set(_bound(node)) - {node.name}
    while True:
        before = len(found)
        for child in ast.walk(node):
            if isinstance(child, (ast.Assign, ast.AnnAssign, ast.For)):
                source = child.iter if isinstance(child, ast.For) else child.value
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                if source is not None and _gives_tensors(source, found):
                    found |= {n for t in targets for c in ast.walk(t) for n in _bound(c)}
        if len(found) == before:
            return found


def _gives_tensors(value: ast.expr, tensors: set[str]) -> bool:
    match value:
        case ast.Name(name):
            return name in tensors
        case ast.Tuple(elements) | ast.List(elements):
            return any(_gives_tensors(e, tensors) for e in elements)
        case ast.IfExp(_, first, second):
            return _gives_tensors(first, tensors) or _gives_tensors(second, tensors)
        case ast.Call(ast.Attribute(ast.Name("torch"), name)):
            return name.startswith("empty")
        case ast.Call(ast.Name(name), args) if name in BUILTINS:
            return any(_gives_tensors(a, tensors) for a in args)
        case ast.Call(ast.Name()):  # a function of the source
            return True
    return False


def _is_constant(value: ast.expr) -> bool:
    """Whether a value is a constant, possibly with a sign."""
    while isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant)


def _require_attribute(node: ast.Attribute, kernel: bool) -> None:
    text, root = ast.unparse(node), node.value
    name = root.id if isinstance(root, ast.Name) else ""
    if node.attr.startswith("_"):
        _refuse(node, text, "it is not the kernel's")
    if name == "torch" and (kernel or node.attr not in TORCH):
        _refuse(node, text, "torch allocates, and computes nothing for a kernel")
    if name == "triton" and node.attr not in TRITON:
        _refuse(node, text, f"of triton there is {', '.join(sorted(TRITON))}")
    if kernel:
        _require_in_kernel(node, text, name)
    if not kernel and name not in ("torch", "triton") and node.attr not in ON_TENSORS:
        _refuse(node, text, f"of a tensor it may ask: {', '.join(sorted(ON_TENSORS))}")


def _require_in_kernel(node: ast.Attribute, text: str, name: str) -> None:
    """Raises BackendError("build") where a kernel uses more of a library or a value than numbers.

    name: the base of the attribute, if that is a name.
    """
    root = ast.unparse(node.value)
    if name == "tl" or root == "tl.math":
        if node.attr not in LANGUAGE and text != "tl.math":
            _refuse(node, text, "of triton.language there is what computes")
    elif root.startswith("tl.") and root != "tl.PropagateNan" and not _is_call(node.value):
        _refuse(node, text, "nothing is behind what triton.language has")
    elif name == "libdevice":
        if node.attr == "core":
            _refuse(node, text, "of libdevice there are its functions")
    elif name != "triton" and node.attr not in OF_VALUES:
        _refuse(node, text, f"of a value there may be: {', '.join(sorted(OF_VALUES))}")


def _is_call(node: ast.expr) -> bool:
    """Whether a value is the result of a call, or a part of one."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return not isinstance(node, ast.Name)


def _is_kernel(node: ast.FunctionDef) -> bool:
    return bool(node.decorator_list)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node defines."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (a.asname or a.name.split(".")[0] for a in node.names)
    elif isinstance(node, ast.FunctionDef):
        yield node.name
        args = node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None:
                yield arg.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _outside(node: ast.stmt) -> set[str]:
    """The names that a module-level statement defines."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    return {name for each in ast.walk(node) for name in _bound(each)}


def _refuse(node: ast.AST, text: str, why: str) -> NoReturn:
    line = getattr(node, "lineno", 0)
    raise BackendError("build", f"line {line}: `{text}` is not for a kernel: {why}")
